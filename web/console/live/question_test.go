package live_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
)

// TestControlsShowWhatChanges: each control shows the value before and after.
func TestControlsShowWhatChanges(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Windows: []room.WindowRule{{Length: room.Duration(24 * time.Hour)}}, Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}})
	s.Join(r, 120)
	was := func(v string) string { return `before: </span>` + v + `</del>` }
	is := func(v string) string { return `after: </span>` + v + `</ins>` }
	s.Post(consoletest.Operator, "/console/rooms/sale/outflow", "per_minute", "1,200", "max_active", "7").Want(http.StatusOK).
		Has(was("60"), is("1,200"), was("no limit"), is("at most 7"), "To call the 120 people in line", was("2 min at least"), is("6.0 s at least"))
	s.Post(consoletest.Operator, "/console/rooms/sale/pause").Want(http.StatusOK).Has(was("60 a minute"), is("none until you resume"), "120 people")
	s.Post(consoletest.Operator, "/console/rooms/sale/freeze-claims").Want(http.StatusOK).Has(was("open"), is("frozen until you resume"), "no visitor loses a place")
	s.Post(consoletest.Operator, "/console/rooms/sale/message", "message[0].language", "en", "message[0].text", "We are late.").Want(http.StatusOK).Has(was("nothing"), is("We are late."), "120 people in line")
	settings := s.Get(consoletest.Operator, "/console/rooms/sale/settings").Want(http.StatusOK)
	base := regexp.MustCompile(`name="base" value="([^"]+)"`).FindStringSubmatch(settings.Body)[1]
	s.Post(consoletest.Operator, "/console/rooms/sale/settings", "base", base, "title", "sale", "outflow.per_minute", "90", "outflow.max_active", "0", "targets", "https://shop.example.com/", "max_waiting", "", "do", "save").
		Want(http.StatusOK).Has("Save these changes?", was("60"), is("90"))
	if r.Snapshot().Outflow.PerMinute != 60 {
		t.Error("the settings changed before they were confirmed")
	}
	s.Post(consoletest.Operator, "/console/rooms/sale/end", "slug", "sale").Want(http.StatusOK).Has(was("120 people"), is("sent away"), "no site in this console uses the room")
}

// TestEndOpensTheShop: ending a room asks whether the shop closes or opens, and changes the rules of its
// site.
func TestEndOpensTheShop(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{"shut", "open"} {
		s := consoletest.New(t)
		r := s.Create(consoletest.Owner, room.Config{Slug: "sale"})
		document := `{
  "version": 1,
  "hosts": ["shop.example.com"],
  "rooms": {"sale": {"url": "` + r.URL + `", "mode": "always", "failure": "fail-open-after 5m"}},
  "rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]
}
`
		if _, err := s.Sites.Create(t.Context(), consoletest.Actor(consoletest.Operator), "shop", []byte(document)); err != nil {
			t.Fatal(err)
		}
		s.Post(consoletest.Operator, "/console/rooms/sale/end", "slug", "sale").Want(http.StatusOK).Has("Shut the shop", "Open the shop", `name="shop" value="open"`)
		s.Post(consoletest.Operator, "/console/rooms/sale/end", "slug", "sale", "shop", choice, "confirmed", "1").RedirectsTo("/console/rooms/sale?done=ended")
		now, err := s.Sites.Site(t.Context(), consoletest.Actor(consoletest.Operator), "shop")
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
