package console

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/room"
)

// TestPublishWarnings names what people overlook.
func TestPublishWarnings(t *testing.T) {
	t.Parallel()
	known := []string{"drand:quicknet", "none"}
	opens := time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		config  room.Config
		form    roomForm
		beacons []string
		want    []string
	}{
		{room.Config{Opens: &opens, Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}}, roomForm{}, known, nil},
		{room.Config{}, roomForm{}, known, []string{"opens at once", "No address of the shop"}},
		{room.Config{Opens: &opens}, roomForm{values: map[string]string{"beacon": "none"}}, known, []string{"No address of the shop", "level 1"}},
		{room.Config{Opens: &opens}, roomForm{}, known[1:], []string{"No address of the shop", "level 1"}},
	} {
		got := publishWarnings(test.config, test.form, test.beacons)
		if len(got) != len(test.want) {
			t.Fatalf("%+v: %q, want %q", test.config, got, test.want)
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%+v: %q, want %q", test.config, got, want)
			}
		}
	}
}

// TestPublishShowsWhatChanges: publishing checks the draft first, and then shows
// times, zone, pace and shop.
func TestPublishShowsWhatChanges(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "taken"})
	form := []string{
		"title", "Concert", "slug", "concert", "opens", "2030-05-01T10:00:00Z", "starts", "2030-05-01T12:00:00Z", "windows[0].length", "10 min",
		"outflow.per_minute", "600", "targets", "https://shop.example.com/tickets", "time_zone", "Europe/Vienna", "do", "publish",
	}
	with := func(name, value string) []string { return append(append([]string{}, form...), name, value) }
	for _, test := range []struct{ name, value, want string }{
		{"slug", "taken", "another room has this address"},
		{"outflow.per_minute", "abc", `id="e-outflow.per_minute"`},
		{"starts", "2030-05-01T09:00:00Z", `id="e-starts"`},
		{"opens", "2020-05-01T09:00:00Z", "must not be in the past"},
		{"time_zone", "Vienna", `id="e-time_zone"`},
	} {
		changed := with("x", "")
		for i := 0; i < len(changed); i += 2 {
			if changed[i] == test.name {
				changed[i+1] = test.value
			}
		}
		s.post(operator, "/console/rooms/new", changed...).want(http.StatusBadRequest).has(test.want).lacks("data-question")
	}
	asked := s.post(operator, "/console/rooms/new", form...).want(http.StatusOK).has("data-question", "Publish this room?",
		">1 May 2030, 10:00 UTC<", ">1 May 2030, 12:00 UTC<", `Europe/Vienna <span class="soft" data-unless-zone="Europe/Vienna">(times here: <span data-time-zone>UTC</span>)</span>`, "600 a minute", "https://shop.example.com/tickets", "/r/concert", "from the opening: 10 min", "publish-saved")
	if list, err := s.control.Drafts(t.Context(), identities()[operator].Actor); err != nil || len(list) != 6 {
		t.Errorf("%d drafts, %v: what was typed is kept even if it cannot be published", len(list), err)
	}
	sent := regexp.MustCompile(`action="(/console/drafts/[^"]+)"`).FindStringSubmatch(asked.body)[1]
	version := regexp.MustCompile(`name="version" value="([0-9]+)"`).FindStringSubmatch(asked.body)[1]
	s.post(operator, sent, "do", "publish-saved", "version", version, "confirmed", "1").leadsTo("/console/rooms/concert?done=room-published")
}

// TestControlsShowWhatChanges: each control shows the value before and after.
func TestControlsShowWhatChanges(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}, Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}})
	s.join(r, 120)
	was := func(v string) string { return `before: </span>` + v + `</del>` }
	is := func(v string) string { return `after: </span>` + v + `</ins>` }
	s.post(operator, "/console/rooms/sale/outflow", "per_minute", "1,200", "max_active", "7").want(http.StatusOK).
		has(was("60"), is("1,200"), was("no limit"), is("at most 7"), "To call the 120 people in line", was("2 min at least"), is("6.0 s at least"))
	s.post(operator, "/console/rooms/sale/pause").want(http.StatusOK).has(was("60 a minute"), is("none until you resume"), "120 people")
	s.post(operator, "/console/rooms/sale/freeze-claims").want(http.StatusOK).has(was("open"), is("stopped until you resume"), "no visitor loses a place")
	s.post(operator, "/console/rooms/sale/message", "message[0].language", "en", "message[0].text", "We are late.").want(http.StatusOK).has(was("nothing"), is("We are late."), "120 people in line")
	settings := s.get(operator, "/console/rooms/sale/settings").want(http.StatusOK)
	base := regexp.MustCompile(`name="base" value="([^"]+)"`).FindStringSubmatch(settings.body)[1]
	s.post(operator, "/console/rooms/sale/settings", "base", base, "title", "sale", "outflow.per_minute", "90", "outflow.max_active", "0", "targets", "https://shop.example.com/", "max_waiting", "", "do", "save").
		want(http.StatusOK).has("Save these changes?", was("60"), is("90"))
	if r.Snapshot().Outflow.PerMinute != 60 {
		t.Error("the settings changed before they were confirmed")
	}
	s.post(operator, "/console/rooms/sale/end", "slug", "sale").want(http.StatusOK).has(was("120 people"), is("sent away"), "no site in this console uses the room")
}

// TestEndOpensTheShop: ending asks whether the shop shuts or opens, and changes
// the rules of its site.
func TestEndOpensTheShop(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{"shut", "open"} {
		s := newConsole(t)
		r := s.create(owner, room.Config{Slug: "sale"})
		document := `{
  "version": 1,
  "hosts": ["shop.example.com"],
  "rooms": {"sale": {"url": "` + r.URL + `", "mode": "always", "failure": "fail-open-after 5m"}},
  "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]
}
`
		if _, err := s.Sites.Create(t.Context(), identities()[operator].Actor, "shop", []byte(document)); err != nil {
			t.Fatal(err)
		}
		s.post(operator, "/console/rooms/sale/end", "slug", "sale").want(http.StatusOK).has("Shut the shop", "Open the shop", `name="shop" value="open"`)
		s.post(operator, "/console/rooms/sale/end", "slug", "sale", "shop", choice, "confirmed", "1").leadsTo("/console/rooms/sale?done=ended")
		now, err := s.Sites.Site(t.Context(), identities()[operator].Actor, "shop")
		if err != nil {
			t.Fatal(err)
		}
		read, err := rules.Parse(now.Rules)
		if err != nil {
			t.Fatal(err)
		}
		want := rules.Always
		if choice == "open" {
			want = rules.Off
		}
		if got := read.Rooms["sale"]; got.Mode != want || got.Failure != "fail-open-after 5m" || !r.Snapshot().Ended {
			t.Errorf("%s: the rules say %s after the end", choice, mustJSON(got))
		}
	}
}

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
