package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

const script = `"><script>alert(1)</script>`

func at(t time.Time) *time.Time { return &t }

// TestRoomsList walks the list: empty, with drafts and rooms of all states,
// searched, archived, and by another organization.
func TestRoomsList(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.get(owner, "/console/rooms").want(http.StatusOK).has("No rooms yet", "Create your first room")
	s.get(viewer, "/console/rooms").want(http.StatusOK).has("No rooms yet").lacks("/console/rooms/new")

	later := time.Now().Add(time.Hour)
	s.create(owner, room.Config{Slug: "soon", Title: "Soon " + script, Opens: &later})
	open := s.create(owner, room.Config{Slug: "busy", Title: "Busy", Starts: &later})
	s.join(open, 3)
	over := s.create(owner, room.Config{Slug: "over", Title: "Over"})
	if err := over.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.create(stranger, room.Config{Slug: "theirs", Title: "Of somebody else"})
	list := s.get(owner, "/console/rooms").want(http.StatusOK).
		has(">not open yet<", ">open to join<", ">ended<", "Soon &#34;&gt;&lt;script&gt;", `data-label="In line" class="number">3<`, "/console/rooms/over/archive").
		lacks("theirs", "<script>alert", "/console/rooms/busy/archive")
	if strings.Index(list.body, "over") > strings.Index(list.body, "soon") {
		t.Error("the newest room is not the first")
	}
	s.get(viewer, "/console/rooms").want(http.StatusOK).has(">not open yet<").lacks("/archive", "/duplicate")
	s.get(owner, "/console/rooms?q=BUSY").want(http.StatusOK).has(">Busy<").lacks(">Over<")
	s.get(owner, "/console/rooms?q="+url.QueryEscape(script)+"x").want(http.StatusOK).has("No room has").lacks("<script>alert")
	s.get(owner, "/console/rooms?after=nonsense").want(http.StatusBadRequest)

	s.post(owner, "/console/rooms/busy/archive").want(http.StatusConflict)
	s.post(stranger, "/console/rooms/over/archive").want(http.StatusNotFound)
	s.post(owner, "/console/rooms/over/archive").leadsTo("/console/rooms?done=room-archived")
	s.get(owner, "/console/rooms").want(http.StatusOK).lacks(">Over<")
	s.get(owner, "/console/rooms?archived=1").want(http.StatusOK).has(">Over<", "/console/rooms/over/unarchive").lacks(">Busy<")
	s.post(owner, "/console/rooms/over/unarchive").leadsTo("/console/rooms?done=room-unarchived")
	s.get(owner, "/console/rooms").want(http.StatusOK).has(">Over<")
}

// TestRoomsPages shows more rooms than one page has.
func TestRoomsPages(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	for i := range control.DefaultPage + 1 {
		s.create(owner, room.Config{Slug: fmt.Sprintf("room-%02d", i)})
	}
	first := s.get(owner, "/console/rooms?q=room").want(http.StatusOK).has("room-50", "Older").lacks(">room-00<")
	_, rest, _ := strings.Cut(first.body, `href="/console/rooms?after=`)
	next, _, _ := strings.Cut(rest, `"`)
	s.get(owner, "/console/rooms?after="+strings.ReplaceAll(next, "&amp;", "&")).want(http.StatusOK).has("room-00", "Newest").lacks("room-01", "Older")
}

// TestDuplicate makes a draft of a room, which opens in the future.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, room.Config{Slug: "sale", Title: "Sale"})
	a := s.post(operator, "/console/rooms/sale/duplicate").want(http.StatusSeeOther)
	path, _, _ := strings.Cut(a.header.Get("Location"), "?")
	s.get(operator, path+"?done=room-duplicated").want(http.StatusOK).has(`value="sale-copy"`, `value="Sale"`, "a copy of the room")
	s.get(stranger, path).want(http.StatusNotFound)
	s.get(owner, "/console/rooms").want(http.StatusOK).has(path, "ready to publish")
	s.get(viewer, "/console/rooms").want(http.StatusOK).has("Drafts").lacks(path)
	s.post(stranger, "/console/rooms/sale/duplicate").want(http.StatusNotFound)
	s.get(viewer, path).want(http.StatusForbidden)
}

// someForm is a draft without problems, in the form's fields.
func someForm(change ...string) []string {
	form := map[string]string{
		"version": "0", "title": "Sale", "slug": "sale", "opens": "2130-05-01T11:30", "starts": "2130-05-01T12:00:00", "closes": "2130-05-01T14:00:00Z",
		"windows[0].length": "30 min", "windows[1].from": "2130-05-01T12:00:00", "windows[1].length": "1 minute",
		"outflow.per_minute": "1,200", "outflow.max_active": "", "claim": "5 min", "session": "15m", "margin": "", "beacon": "none", "quorum": "",
		"max_waiting": "", "targets": "https://shop.example.com/tickets\r\n\r\nhttps://shop.example.com/more", "do": "save",
	}
	for i := 0; i+1 < len(change); i += 2 {
		form[change[i]] = change[i+1]
	}
	var pairs []string
	for name, value := range form {
		pairs = append(pairs, name, value)
	}
	return pairs
}

// draftOf saves a new draft and returns its path.
func (s *site) draftOf(form ...string) string {
	s.Helper()
	a := s.post(owner, "/console/rooms/new", form...).want(http.StatusSeeOther)
	path, notice, _ := strings.Cut(a.header.Get("Location"), "?")
	if notice != "done=draft-saved" || !strings.HasPrefix(path, "/console/drafts/") {
		s.Fatalf("leads to %s", a.header.Get("Location"))
	}
	return path
}

// TestPresets begins with each of them: what they offer has no problem but its
// slug.
func TestPresets(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.get(owner, "/console/rooms/new").want(http.StatusOK).has("Begin with this", "<strong>Bots:</strong>")
	for _, p := range presets {
		s.get(owner, "/console/rooms/new?preset="+p.Name).want(http.StatusOK).has(`name="windows[0].length"`).lacks("notice warn")
		form := p.form(time.Now(), "none")
		form.set("slug", "sale")
		config, err := form.config(nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := room.ParseConfig(config)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		if problems := s.control.Rooms.Problems(c); len(problems) > 0 {
			t.Errorf("%s: %v", p.Name, problems)
		}
		if len(form.outline()) < 3 && !p.IsNet() { // that begins when it is published
			t.Errorf("%s: outline %q", p.Name, form.outline())
		}
		if bars := p.Bars(); len(bars) == 0 || bars[len(bars)-1].X+bars[len(bars)-1].Width > 100.1 {
			t.Errorf("%s: drawing %v", p.Name, bars)
		}
	}
	s.get(owner, "/console/rooms/new?preset=nonsense").want(http.StatusOK).has("Begin with this")
	s.get(owner, "/console/rooms/new?preset=minutes").has("Visitors can join from ").lacks("How a safety net works", atOnce)
}

// TestSafetyNet begins with a room that opens by itself, and puts it in front of
// a site as one.
func TestSafetyNet(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.get(owner, "/console/sites").want(http.StatusOK).has(`href="/console/rooms/new?preset=safety-net"`)
	s.get(owner, "/console/rooms/new?preset=safety-net").want(http.StatusOK).has("How a safety net works", `value="300"`, `value="5000"`, `value="10 min"`, `"mode": "safety-net"`, atOnce)
	p, ok := findPreset(safetyNet)
	if !ok {
		t.Fatal("there is no such preset")
	}
	form := p.form(time.Now(), "none")
	form.set("slug", "net")
	form.set("targets", "https://shop.example.com/")
	config, err := form.config(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := room.ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := s.create(owner, c)
	if now := r.Now(); r.Snapshot().Phase(now) != room.PhaseServing {
		t.Errorf("it is %s when it was published", r.Snapshot().Phase(now))
	}
	s.get(owner, "/console/rooms/net").want(http.StatusOK).has(`href="/console/new-site?room=net&amp;mode=safety-net"`)
	const chosen = `name="mode" value="safety-net" checked`
	s.get(owner, "/console/new-site?room=net&mode=safety-net").want(http.StatusOK).has(chosen, r.URL, "shop.example.com")
	for _, other := range []string{"", "&mode=always", "&mode=nonsense"} {
		s.get(owner, "/console/new-site?room=net"+other).want(http.StatusOK).lacks(chosen)
	}
}

// TestDraft saves a draft, changes it, publishes it, and deletes another.
func TestDraft(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	path := s.draftOf(someForm()...)
	s.get(operator, path).want(http.StatusOK).has(`value="Sale"`, `value="2130-05-01T11:30:00"`, `value="1200"`, `value="30 min"`, `value="1 min"`, "https://shop.example.com/more", "the same chance").lacks("notice warn", "class=\"error\"")
	for _, who := range []string{stranger, viewer} {
		status := map[string]int{stranger: http.StatusNotFound, viewer: http.StatusForbidden}[who]
		s.get(who, path).want(status)
		s.post(who, path, someForm("version", "1")...).want(status)
		s.post(who, path+"/simulate", someForm("version", "1")...).want(status)
	}
	s.post(operator, path, someForm("version", "1", "title", "Winter sale", "do", "save")...).leadsTo(path + "?done=draft-saved")
	s.post(operator, path, someForm("version", "2", "title", "Spring sale", "do", "publish")...).want(http.StatusOK).has("Publishing is for good", "opening and start cannot be moved", `name="do" value="publish-saved"`, `name="version" value="3"`, path)
	s.get(operator, path).want(http.StatusOK).has("Spring sale") // nothing typed is lost while one thinks
	s.post(operator, path, "do", "publish-saved", "version", "2", "confirmed", "1").want(http.StatusConflict)
	s.post(operator, path, "do", "publish-saved", "version", "3", "confirmed", "1").leadsTo("/console/rooms/sale?done=room-published")
	s.get(operator, path).want(http.StatusNotFound)
	r, err := s.control.Room(t.Context(), identities()[owner].Actor, "sale")
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Config(); c.Title != "Spring sale" || c.Outflow.PerMinute != 1200 || len(c.Windows) != 2 || time.Duration(c.Windows[0].Length) != 30*time.Minute || len(c.Targets) != 2 || !c.Opens.Equal(time.Date(2130, 5, 1, 11, 30, 0, 0, time.UTC)) {
		t.Errorf("published %+v", c)
	}

	other := s.draftOf(someForm()...)
	s.post(owner, other, someForm("version", "1", "do", "publish", "confirmed", "1")...).want(http.StatusBadRequest).has("is taken: another room has this address", `value="2"`)
	s.post(owner, other, someForm("version", "2", "do", "delete")...).want(http.StatusOK).has("Delete this draft?")
	s.post(stranger, other, "do", "delete", "confirmed", "1").want(http.StatusNotFound)
	s.post(owner, other, "do", "delete", "confirmed", "1").leadsTo("/console/rooms?done=draft-deleted")
	s.get(owner, other).want(http.StatusNotFound)
	s.get(owner, "/console/drafts/nonsense").want(http.StatusNotFound)
	s.post(owner, s.draftOf(someForm()...), someForm("version", "1", "do", "nonsense")...).want(http.StatusBadRequest)
}

// TestPublishNew publishes a room that was never saved as a draft.
func TestPublishNew(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.post(owner, "/console/rooms/new", someForm("do", "publish", "confirmed", "1")...).leadsTo("/console/rooms/sale?done=room-published")
	if drafts, err := s.control.Drafts(t.Context(), identities()[owner].Actor); err != nil || len(drafts) != 0 {
		t.Errorf("drafts %v, %v", drafts, err)
	}
}

// TestDraftProblems shows every problem beside its field, keeps what was typed,
// and saves it all the same; but publishes nothing.
func TestDraftProblems(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	for field, wrong := range map[string]string{
		"slug": "No Slug", "title": strings.Repeat("x", 201), "opens": "2001-01-01T00:00:00", "starts": "2130-05-01T11:00:00", "closes": "2130-05-01T11:00:00",
		"windows[0].length": "1 parsec", "windows[1].length": "5 ms", "windows[1].from": "2130-05-01T11:00:00", "outflow.per_minute": "many", "outflow.max_active": "-1",
		"claim": "soon", "session": "8 d", "beacon": "drand:nonsense", "quorum": "few", "max_waiting": "5000000000", "targets": "https://ok.example.com\nftp://shop.example.com",
		"margin": "soon",
	} {
		path := s.draftOf(someForm(field, wrong)...)
		page := s.get(owner, path).want(http.StatusOK).has("cannot be published yet", `id="e-`+field+`"`)
		shown := strings.ReplaceAll(wrong, "\n", "")
		if field == "targets" {
			shown = "ftp://shop.example.com"
			page.has("line 2 must be a URL")
		}
		page.has(shown)
		if got := strings.Count(page.body, `class="error"`); got != 1 && field != "closes" {
			t.Errorf("%s %q: %d errors", field, wrong, got)
		}
		s.post(owner, path, someForm(field, wrong, "version", "1", "do", "publish", "confirmed", "1")...).want(http.StatusBadRequest).has(`id="e-`+field+`"`, shown)
		s.post(owner, path, "do", "delete", "confirmed", "1").want(http.StatusSeeOther)
	}
	if list, err := s.control.List(t.Context(), identities()[owner].Actor, control.Filter{}); err != nil || len(list.List) != 0 {
		t.Errorf("rooms %v, %v", list.List, err)
	}
}

// TestDraftHosts offers the hosts of the organization, and refuses others.
func TestDraftHosts(t *testing.T) {
	t.Parallel()
	s := newConsole(t, func(o *Options) { o.Hosts = ownHosts })
	s.get(owner, "/console/rooms/new?preset=minutes").want(http.StatusOK).has("<option>queue.example.org</option>")
	path := s.draftOf(someForm("host", "queue.example.org")...)
	s.get(owner, path).want(http.StatusOK).has("<option selected>queue.example.org</option>", "https://queue.example.org/r/sale")
	s.post(owner, path, someForm("host", "queue.example.net", "version", "1", "do", "publish", "confirmed", "1")...).want(http.StatusBadRequest).has(`id="e-host"`)
	s.post(owner, path, someForm("host", "queue.example.org", "version", "2", "do", "publish", "confirmed", "1")...).want(http.StatusSeeOther)
	r, err := s.control.Room(t.Context(), identities()[owner].Actor, "sale")
	if err != nil || r.URL != "https://queue.example.org/r/sale" {
		t.Errorf("%v, %v", r, err)
	}
}

// TestDraftTexts types markup into every field: none of it becomes markup.
func TestDraftTexts(t *testing.T) {
	t.Parallel()
	s := newConsole(t, func(o *Options) { o.Hosts = ownHosts })
	form := someForm()
	for i := 1; i < len(form); i += 2 {
		if name := form[i-1]; name != "do" && name != "version" {
			form[i] = script + form[i]
		}
	}
	form = append(form, "host", script, "capacity", script, "stay", script, "people", script, "no_show", script, "sim_visitors", script, "sim_tickets", script, "sim_bots", script, "sim_no_show", script)
	path := s.draftOf(form...)
	version := func(n, verb string) []string { return append([]string{"version", n, "do", verb}, form...) }
	s.get(owner, path).want(http.StatusOK).lacks("<script>alert")
	s.get(owner, "/console/rooms").want(http.StatusOK).lacks("<script>alert")
	for _, verb := range []string{"add-window", "remove-window:1", "calculate", "use-capacity"} {
		s.post(owner, path, version("1", verb)...).want(http.StatusOK).has("&lt;script&gt;alert").lacks("<script>alert")
	}
	s.post(owner, path+"/simulate", form...).want(http.StatusBadRequest).has("&lt;script&gt;alert").lacks("<script>alert")
	s.post(owner, path+"/simulate", append(form, "part", "1")...).want(http.StatusBadRequest).lacks("<script>alert", "<html")
	s.post(owner, path, version("0", "save")...).want(http.StatusConflict).lacks("<script>alert")
	s.post(owner, "/console/rooms/new", someForm("title", "a\x00b\xff")...).want(http.StatusBadRequest)
}

// TestDraftWindows adds and removes rows without losing what is typed.
func TestDraftWindows(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	form := func(pairs ...string) []string { return someForm(append(pairs, "title", "Typed")...) }
	s.post(owner, "/console/rooms/new", form("do", "add-window")...).want(http.StatusOK).
		has(`name="windows[2].from" type="datetime-local" value="2130-05-01T12:10:00" step="1" autofocus`, `name="windows[2].length" type="text" value="1 minute"`, `value="Typed"`)
	s.post(owner, "/console/rooms/new", form("do", "remove-window:0")...).want(http.StatusOK).
		has(`name="windows[0].length" type="text" value="1 minute"`).lacks("windows[1]")
	for _, nonsense := range []string{"remove-window:9", "remove-window:-1"} {
		s.post(owner, "/console/rooms/new", form("do", nonsense)...).want(http.StatusOK).has("windows[1].length").lacks("windows[2]")
	}
	s.post(owner, "/console/rooms/new", form("do", "remove-window:x")...).want(http.StatusBadRequest)
}

// TestConflict has two people edit the same draft.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	path := s.draftOf(someForm()...)
	s.post(owner, path, someForm("version", "1", "title", "Of the owner")...).leadsTo(path + "?done=draft-saved")
	s.post(operator, path, someForm("version", "1", "title", "Of the operator", "windows[1].length", "2 min")...).want(http.StatusConflict).
		has("Of the owner", "Of the operator", "owner@example.com", ": 1 min<", ": 2 min<", `name="version" value="2"`, `name="do" value="save"`, "Drop mine").
		lacks("People per minute")
	s.get(owner, path).want(http.StatusOK).has("Of the owner")
	s.post(operator, path, someForm("version", "2", "title", "Of the operator")...).leadsTo(path + "?done=draft-saved")
	s.get(owner, path).want(http.StatusOK).has("Of the operator")
	s.post(operator, path, "do", "save", "title", "Without the rest").want(http.StatusConflict)
}

// TestBrandStays saves the form over a draft with members that it has no fields for.
func TestBrandStays(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	who := identities()[owner].Actor
	d, err := s.control.SaveDraft(t.Context(), who, [16]byte{}, 0, "", []byte(`{"slug":"sale","brand":{"color":"#123456"},"windows":[{"from":"2130-05-01T10:00:00Z","length":"1m"}],"strange":1}`))
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/drafts/" + d.ID.String()
	s.get(owner, path).want(http.StatusOK).has("<strong>strange</strong>: is not known", `name="opens" type="datetime-local" value="2130-05-01T10:00:00"`)
	s.post(owner, path, someForm("version", "1")...).leadsTo(path + "?done=draft-saved")
	d, err = s.control.Draft(t.Context(), who, d.ID)
	if err != nil || !strings.Contains(string(d.Draft.Config), "#123456") {
		t.Errorf("%s, %v", d.Draft.Config, err)
	}
}

// TestCapacity calculates an outflow, and takes it over.
func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		form capacityForm
		want string
	}{
		{capacityForm{"500", "4 min", "20,000", "10"}, "Let in 125 per minute, with at most 500 at once. Everyone is through after about 2 h 40 min, and about 22,223 have to be called for that."},
		{capacityForm{"100", "90 s", "", ""}, "Let in 66 per minute, with at most 100 at once."},
		{capacityForm{"1", "1 h", "10", "x"}, "Let in 1 per minute, with at most 1 at once. Everyone is through after about 10 min, and about 10 have to be called for that."},
		{capacityForm{"4000000000", "1 ms", "", ""}, "Let in 10,000,000 per minute, with at most 4,000,000,000 at once."},
		{capacityForm{"0", "4 min", "", ""}, ""},
		{capacityForm{"500", "long", "", ""}, ""},
		{capacityForm{"500", "0 s", "", ""}, ""},
		{capacityForm{}, ""},
	} {
		got := ""
		if f, ok := test.form.flow(); ok {
			got = f.Words()
		}
		if got != test.want {
			t.Errorf("%+v: %s", test.form, got)
		}
	}
	s := newConsole(t)
	s.post(owner, "/console/rooms/new", someForm("do", "calculate", "capacity", "500", "stay", "4 min")...).want(http.StatusOK).has("Let in 125 per minute", `value="1,200"`)
	s.post(owner, "/console/rooms/new", someForm("do", "use-capacity", "capacity", "500", "stay", "4 min")...).want(http.StatusOK).has(`name="outflow.per_minute" type="text" value="125"`, `name="outflow.max_active" type="text" value="500"`)
	s.post(owner, "/console/rooms/new", someForm("do", "calculate", "capacity", "500", "stay", "")...).want(http.StatusOK).has(`id="e-capacity"`)
}

// TestReadLength reads lengths as people write them, and again as they are shown.
func TestReadLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"100 ms": 100 * time.Millisecond, "1 min": time.Minute, "1 min 30 s": 90 * time.Second, "1m30s": 90 * time.Second, "2 Hours": 2 * time.Hour,
		"1.5 h": 90 * time.Minute, " 31 d ": 31 * 24 * time.Hour, "3 secs": 3 * time.Second, "0 s": 0,
	} {
		if got, ok := readLength(text); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "90", "s", "1 parsec", "-1 s", "1 s x", "1..5 h", "9999999999 h", "1 \u212Ain"} {
		if got, ok := readLength(text); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestSlugOf proposes what the script proposes (web/ui/test/console/lengths.test.ts).
func TestSlugOf(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Winter sale 2026": "winter-sale-2026", "  F\u00fcr alle: Stra\u00dfe & Caf\u00e9!  ": "fur-alle-strasse-cafe",
		"\u6771\u4eac": "", "---": "", strings.Repeat("a", 62) + " b": strings.Repeat("a", 62),
	} {
		if got := slugOf(title); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
	s := newConsole(t)
	path := s.draftOf(someForm("slug", "", "title", "Winter sale")...)
	s.get(owner, path).want(http.StatusOK).has(`value="winter-sale"`)
}

func FuzzReadLength(f *testing.F) {
	f.Add("1 min 30 s")
	f.Add("1.5h 3ms")
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := readLength(text)
		if !ok {
			return
		}
		if again, ok := readLength(duration(d)); !ok || again != d {
			t.Errorf("%q is %v, shown %q, read %v", text, d, duration(d), again)
		}
	})
}

// FuzzRoomForm saves whatever is typed, and shows it as it was typed.
func FuzzRoomForm(f *testing.F) {
	f.Add("sale", "Sale", "2130-05-01T12:00", "1 min", "60", "https://shop.example.com")
	f.Add("", "\x00", "never", "x", "-0", "\n")
	f.Add("sale", "Sale", "", "", "1", "")
	f.Fuzz(func(t *testing.T, slug, title, moment, length, count, targets string) {
		form := readRoomForm(url.Values{
			"slug": {slug}, "title": {title}, "opens": {moment}, "closes": {moment}, "windows[0].length": {length}, "windows[1].length": {length}, "windows[1].from": {moment},
			"outflow.per_minute": {count}, "max_waiting": {count}, "claim": {length}, "targets": {targets}, "signed_return": {count}, "time_zone": {title},
		})
		config, err := form.config(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = room.ParseConfig(config) // must not panic
		form.outline()
		shown := newRoomForm(config, "")
		again, err := shown.config(nil)
		if err != nil || string(again) != string(config) {
			t.Errorf("%s becomes %s, %v", config, again, err)
		}
		for _, name := range []string{"slug", "title", "signed_return", "time_zone"} {
			if form.Value(name) != shown.Value(name) {
				t.Errorf("%s %q becomes %q", name, form.Value(name), shown.Value(name))
			}
		}
	})
}

// ownHosts are those of the first organization.
func ownHosts(_ context.Context, actor account.Actor) ([]string, error) {
	if actor.Org == account.MainOrg {
		return []string{"queue.example.org"}, nil
	}
	return nil, nil
}

func TestByLine(t *testing.T) {
	t.Parallel()
	got := byLine(invalid.List{
		{Field: "title", Detail: "is too long"}, {Field: "targets[0]", Detail: "must be a URL"}, {Field: "targets[2]", Detail: "is too long"},
		{Field: "targets[11]", Detail: "must be a URL"}, {Field: "targets", Detail: "must be at most 20"},
	})
	want := invalid.List{
		{Field: "title", Detail: "is too long"}, {Field: "targets[0]", Detail: "lines 1, 12 must be a URL"}, {Field: "targets[2]", Detail: "line 3 is too long"},
		{Field: "targets", Detail: "must be at most 20"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
