package rooms_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/console/rooms"
)

const script = `"><script>alert(1)</script>`

func at(t time.Time) *time.Time { return &t }

// TestRoomsList reads the list: empty, with drafts and rooms of all states, searched, archived, and as
// another organization.
func TestRoomsList(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Has("No rooms yet", "Create your first room")
	s.Get(consoletest.Viewer, "/console/rooms").Want(http.StatusOK).Has("No rooms yet").Lacks("/console/rooms/new")

	later := time.Now().Add(time.Hour)
	s.Create(consoletest.Owner, room.Config{Slug: "soon", Title: "Soon " + script, Opens: &later})
	open := s.Create(consoletest.Owner, room.Config{Slug: "busy", Title: "Busy", Starts: &later})
	s.Join(open, 3)
	over := s.Create(consoletest.Owner, room.Config{Slug: "over", Title: "Over"})
	if err := over.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Create(consoletest.Stranger, room.Config{Slug: "theirs", Title: "Of another organization"})
	list := s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).
		Has(">not open yet<", ">open to join<", ">ended<", "Soon &#34;&gt;&lt;script&gt;", `data-label="In line" class="number">3<`, "/console/rooms/over/archive").
		Lacks("theirs", "<script>alert", "/console/rooms/busy/archive")
	if strings.Index(list.Body, "over") > strings.Index(list.Body, "soon") {
		t.Error("the newest room is not the first")
	}
	s.Get(consoletest.Viewer, "/console/rooms").Want(http.StatusOK).Has(">not open yet<").Lacks("/archive", "/duplicate")
	s.Get(consoletest.Owner, "/console/rooms?q=BUSY").Want(http.StatusOK).Has(">Busy<").Lacks(">Over<")
	s.Get(consoletest.Owner, "/console/rooms?q="+url.QueryEscape(script)+"x").Want(http.StatusOK).Has("No room has").Lacks("<script>alert")
	s.Get(consoletest.Owner, "/console/rooms?after=nonsense").Want(http.StatusBadRequest)

	s.Post(consoletest.Owner, "/console/rooms/busy/archive").Want(http.StatusConflict)
	s.Post(consoletest.Stranger, "/console/rooms/over/archive").Want(http.StatusNotFound)
	s.Post(consoletest.Owner, "/console/rooms/over/archive").RedirectsTo("/console/rooms?done=room-archived")
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Lacks(">Over<")
	s.Get(consoletest.Owner, "/console/rooms?archived=1").Want(http.StatusOK).Has(">Over<", "/console/rooms/over/unarchive").Lacks(">Busy<")
	s.Post(consoletest.Owner, "/console/rooms/over/unarchive").RedirectsTo("/console/rooms?done=room-unarchived")
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Has(">Over<")
}

// TestRoomsPages lists more rooms than one page has.
func TestRoomsPages(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	for i := range control.DefaultPage + 1 {
		s.Create(consoletest.Owner, room.Config{Slug: fmt.Sprintf("room-%02d", i)})
	}
	first := s.Get(consoletest.Owner, "/console/rooms?q=room").Want(http.StatusOK).Has("room-50", "Older").Lacks(">room-00<")
	_, rest, _ := strings.Cut(first.Body, `href="/console/rooms?after=`)
	next, _, _ := strings.Cut(rest, `"`)
	s.Get(consoletest.Owner, "/console/rooms?after="+strings.ReplaceAll(next, "&amp;", "&")).Want(http.StatusOK).Has("room-00", "Newest").Lacks("room-01", "Older")
}

// TestDuplicate makes a draft from a room; it opens in the future.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale"})
	a := s.Post(consoletest.Operator, "/console/rooms/sale/duplicate").Want(http.StatusSeeOther)
	path, _, _ := strings.Cut(a.Header.Get("Location"), "?")
	s.Get(consoletest.Operator, path+"?done=room-duplicated").Want(http.StatusOK).Has(`value="sale-copy"`, `value="Sale"`, "a copy of the room")
	s.Get(consoletest.Stranger, path).Want(http.StatusNotFound)
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Has(path, "ready to publish")
	s.Get(consoletest.Viewer, "/console/rooms").Want(http.StatusOK).Has("Drafts").Lacks(path)
	s.Post(consoletest.Stranger, "/console/rooms/sale/duplicate").Want(http.StatusNotFound)
	s.Get(consoletest.Viewer, path).Want(http.StatusForbidden)
}

// someForm is a draft without problems, as the form's fields.
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
func draftOf(s *consoletest.Site, form ...string) string {
	s.Helper()
	a := s.Post(consoletest.Owner, "/console/rooms/new", form...).Want(http.StatusSeeOther)
	path, notice, _ := strings.Cut(a.Header.Get("Location"), "?")
	if notice != "done=draft-saved" || !strings.HasPrefix(path, "/console/drafts/") {
		s.Fatalf("leads to %s", a.Header.Get("Location"))
	}
	return path
}

// TestPresets creates a draft from each preset: it has no problem except for its slug.
func TestPresets(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Get(consoletest.Owner, "/console/rooms/new").Want(http.StatusOK).Has("Start with this", "<strong>Bots:</strong>")
	for _, name := range rooms.PresetNames() {
		s.Get(consoletest.Owner, "/console/rooms/new?preset="+name).Want(http.StatusOK).Has(`name="windows[0].length"`).Lacks("notice warn")
		config, err := rooms.PresetConfig(name, "sale")
		if err != nil {
			t.Fatal(err)
		}
		c, err := room.ParseConfig(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if problems := s.Control.Rooms.Problems(c); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	s.Get(consoletest.Owner, "/console/rooms/new?preset=nonsense").Want(http.StatusOK).Has("Start with this")
	s.Get(consoletest.Owner, "/console/rooms/new?preset=minutes").Has("Visitors can join from ").Lacks("How a safety net works", rooms.AtOnce)
}

// TestSafetyNet creates a room that opens by itself, and puts it in front of a site as a safety net.
func TestSafetyNet(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Get(consoletest.Owner, "/console/sites").Want(http.StatusOK).Has(`href="/console/rooms/new?preset=safety-net"`)
	s.Get(consoletest.Owner, "/console/rooms/new?preset=safety-net").Want(http.StatusOK).Has("How a safety net works", `value="300"`, `value="5000"`, `value="10 min"`, `"mode": "safety-net"`, rooms.AtOnce)
	config, err := rooms.PresetConfig("safety-net", "net", "targets", "https://shop.example.com/")
	if err != nil {
		t.Fatal(err)
	}
	c, err := room.ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Create(consoletest.Owner, c)
	if now := r.Now(); r.Snapshot().Phase(now) != room.PhaseServing {
		t.Errorf("it is %s when it was published", r.Snapshot().Phase(now))
	}
	s.Get(consoletest.Owner, "/console/rooms/net").Want(http.StatusOK).Has(`href="/console/new-site?room=net&amp;mode=safety-net"`)
	const chosen = `name="mode" value="safety-net" checked`
	s.Get(consoletest.Owner, "/console/new-site?room=net&mode=safety-net").Want(http.StatusOK).Has(chosen, r.URL, "shop.example.com")
	for _, other := range []string{"", "&mode=always", "&mode=nonsense"} {
		s.Get(consoletest.Owner, "/console/new-site?room=net"+other).Want(http.StatusOK).Lacks(chosen)
	}
}

// TestDraft saves a draft, changes it, publishes it, and deletes another.
func TestDraft(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	path := draftOf(s, someForm()...)
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has(`value="Sale"`, `value="2130-05-01T11:30:00"`, `value="1200"`, `value="30 min"`, `value="1 min"`, "https://shop.example.com/more", "the same chance").Lacks("notice warn", "class=\"error\"")
	for _, who := range []string{consoletest.Stranger, consoletest.Viewer} {
		status := map[string]int{consoletest.Stranger: http.StatusNotFound, consoletest.Viewer: http.StatusForbidden}[who]
		s.Get(who, path).Want(status)
		s.Post(who, path, someForm("version", "1")...).Want(status)
		s.Post(who, path+"/simulate", someForm("version", "1")...).Want(status)
	}
	s.Post(consoletest.Operator, path, someForm("version", "1", "title", "Winter sale", "do", "save")...).RedirectsTo(path + "?done=draft-saved")
	s.Post(consoletest.Operator, path, someForm("version", "2", "title", "Spring sale", "do", "publish")...).Want(http.StatusOK).Has("Publishing cannot be undone", "opening and start cannot be moved", `name="do" value="publish-saved"`, `name="version" value="3"`, path)
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Spring sale") // no input is lost by waiting
	s.Post(consoletest.Operator, path, "do", "publish-saved", "version", "2", "confirmed", "1").Want(http.StatusConflict)
	s.Post(consoletest.Operator, path, "do", "publish-saved", "version", "3", "confirmed", "1").RedirectsTo("/console/rooms/sale?done=room-published")
	s.Get(consoletest.Operator, path).Want(http.StatusNotFound)
	r, err := s.Control.Room(t.Context(), consoletest.Actor(consoletest.Owner), "sale")
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Config(); c.Title != "Spring sale" || c.Outflow.PerMinute != 1200 || len(c.Windows) != 2 || time.Duration(c.Windows[0].Length) != 30*time.Minute || len(c.Targets) != 2 || !c.Opens.Equal(time.Date(2130, 5, 1, 11, 30, 0, 0, time.UTC)) {
		t.Errorf("published %+v", c)
	}

	other := draftOf(s, someForm()...)
	s.Post(consoletest.Owner, other, someForm("version", "1", "do", "publish", "confirmed", "1")...).Want(http.StatusBadRequest).Has("is taken: another room has this address", `value="2"`)
	s.Post(consoletest.Owner, other, someForm("version", "2", "do", "delete")...).Want(http.StatusOK).Has("Delete this draft?")
	s.Post(consoletest.Stranger, other, "do", "delete", "confirmed", "1").Want(http.StatusNotFound)
	s.Post(consoletest.Owner, other, "do", "delete", "confirmed", "1").RedirectsTo("/console/rooms?done=draft-deleted")
	s.Get(consoletest.Owner, other).Want(http.StatusNotFound)
	s.Get(consoletest.Owner, "/console/drafts/nonsense").Want(http.StatusNotFound)
	s.Post(consoletest.Owner, draftOf(s, someForm()...), someForm("version", "1", "do", "nonsense")...).Want(http.StatusBadRequest)
}

// TestPublishNew publishes a room that was never saved as a draft.
func TestPublishNew(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("do", "publish", "confirmed", "1")...).RedirectsTo("/console/rooms/sale?done=room-published")
	if drafts, err := s.Control.Drafts.List(t.Context(), consoletest.Actor(consoletest.Owner)); err != nil || len(drafts) != 0 {
		t.Errorf("drafts %v, %v", drafts, err)
	}
}

// TestDraftProblems shows every problem next to its field, keeps the input, and saves it nevertheless, but
// publishes nothing.
func TestDraftProblems(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	for field, wrong := range map[string]string{
		"slug": "No Slug", "title": strings.Repeat("x", 201), "opens": "2001-01-01T00:00:00", "starts": "2130-05-01T11:00:00", "closes": "2130-05-01T11:00:00",
		"windows[0].length": "1 parsec", "windows[1].length": "5 ms", "windows[1].from": "2130-05-01T11:00:00", "outflow.per_minute": "many", "outflow.max_active": "-1",
		"claim": "soon", "session": "8 d", "beacon": "drand:nonsense", "quorum": "few", "max_waiting": "5000000000", "targets": "https://ok.example.com\nftp://shop.example.com",
		"margin": "soon", "slots": "30 min", "lots": "club",
	} {
		path := draftOf(s, someForm(field, wrong)...)
		page := s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("cannot be published yet", `id="e-`+field+`"`)
		shown := strings.ReplaceAll(wrong, "\n", "")
		if field == "targets" {
			shown = "ftp://shop.example.com"
			page.Has("line 2 must be a URL")
		}
		page.Has(shown)
		if got := strings.Count(page.Body, `class="error"`); got != 1 && field != "closes" {
			t.Errorf("%s %q: %d errors", field, wrong, got)
		}
		s.Post(consoletest.Owner, path, someForm(field, wrong, "version", "1", "do", "publish", "confirmed", "1")...).Want(http.StatusBadRequest).Has(`id="e-`+field+`"`, shown)
		s.Post(consoletest.Owner, path, "do", "delete", "confirmed", "1").Want(http.StatusSeeOther)
	}
	if list, err := s.Control.List(t.Context(), consoletest.Actor(consoletest.Owner), control.Filter{}); err != nil || len(list.List) != 0 {
		t.Errorf("rooms %v, %v", list.List, err)
	}
}

// TestDraftHosts offers the hosts of the organization, and refuses others.
func TestDraftHosts(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t, func(o *console.Options) { o.Hosts = ownHosts })
	s.Get(consoletest.Owner, "/console/rooms/new?preset=minutes").Want(http.StatusOK).Has("<option>queue.example.org</option>")
	path := draftOf(s, someForm("host", "queue.example.org")...)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("<option selected>queue.example.org</option>", "https://queue.example.org/r/sale")
	s.Post(consoletest.Owner, path, someForm("host", "queue.example.net", "version", "1", "do", "publish", "confirmed", "1")...).Want(http.StatusBadRequest).Has(`id="e-host"`)
	s.Post(consoletest.Owner, path, someForm("host", "queue.example.org", "version", "2", "do", "publish", "confirmed", "1")...).Want(http.StatusSeeOther)
	r, err := s.Control.Room(t.Context(), consoletest.Actor(consoletest.Owner), "sale")
	if err != nil || r.URL != "https://queue.example.org/r/sale" {
		t.Errorf("%v, %v", r, err)
	}
}

// TestDraftTexts enters markup in every field: none of it becomes markup.
func TestDraftTexts(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t, func(o *console.Options) { o.Hosts = ownHosts })
	form := someForm()
	for i := 1; i < len(form); i += 2 {
		if name := form[i-1]; name != "do" && name != "version" {
			form[i] = script + form[i]
		}
	}
	form = append(form, "host", script, "capacity", script, "stay", script, "people", script, "no_show", script, "sim_visitors", script, "sim_tickets", script, "sim_bots", script, "sim_no_show", script)
	path := draftOf(s, form...)
	version := func(n, verb string) []string { return append([]string{"version", n, "do", verb}, form...) }
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Lacks("<script>alert")
	s.Get(consoletest.Owner, "/console/rooms").Want(http.StatusOK).Lacks("<script>alert")
	for _, verb := range []string{"add-window", "remove-window:1", "calculate", "use-capacity"} {
		s.Post(consoletest.Owner, path, version("1", verb)...).Want(http.StatusOK).Has("&lt;script&gt;alert").Lacks("<script>alert")
	}
	s.Post(consoletest.Owner, path+"/simulate", form...).Want(http.StatusBadRequest).Has("&lt;script&gt;alert").Lacks("<script>alert")
	s.Post(consoletest.Owner, path+"/simulate", append(form, "part", "1")...).Want(http.StatusBadRequest).Lacks("<script>alert", "<html")
	s.Post(consoletest.Owner, path, version("0", "save")...).Want(http.StatusConflict).Lacks("<script>alert")
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("title", "a\x00b\xff")...).Want(http.StatusBadRequest)
}

// TestDraftWindows adds and removes rows without losing input.
func TestDraftWindows(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	form := func(pairs ...string) []string { return someForm(append(pairs, "title", "Typed")...) }
	s.Post(consoletest.Owner, "/console/rooms/new", form("do", "add-window")...).Want(http.StatusOK).
		Has(`name="windows[2].from" type="datetime-local" value="2130-05-01T12:10:00" step="1" autofocus`, `name="windows[2].length" type="text" value="1 minute"`, `value="Typed"`)
	s.Post(consoletest.Owner, "/console/rooms/new", form("do", "remove-window:0")...).Want(http.StatusOK).
		Has(`name="windows[0].length" type="text" value="1 minute"`).Lacks("windows[1]")
	for _, nonsense := range []string{"remove-window:9", "remove-window:-1"} {
		s.Post(consoletest.Owner, "/console/rooms/new", form("do", nonsense)...).Want(http.StatusOK).Has("windows[1].length").Lacks("windows[2]")
	}
	s.Post(consoletest.Owner, "/console/rooms/new", form("do", "remove-window:x")...).Want(http.StatusBadRequest)
}

// TestConflict has two people edit the same draft.
func TestConflict(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	path := draftOf(s, someForm()...)
	s.Post(consoletest.Owner, path, someForm("version", "1", "title", "Of the owner")...).RedirectsTo(path + "?done=draft-saved")
	s.Post(consoletest.Operator, path, someForm("version", "1", "title", "Of the operator", "windows[1].length", "2 min")...).Want(http.StatusConflict).
		Has("Of the owner", "Of the operator", "owner@example.com", ": 1 min<", ": 2 min<", `name="version" value="2"`, `name="do" value="save"`, "Discard mine").
		Lacks("People per minute")
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("Of the owner")
	s.Post(consoletest.Operator, path, someForm("version", "2", "title", "Of the operator")...).RedirectsTo(path + "?done=draft-saved")
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("Of the operator")
	s.Post(consoletest.Operator, path, "do", "save", "title", "Without the rest").Want(http.StatusConflict)
}

// TestBrandStays saves the form of a draft that has members without fields: these are kept.
func TestBrandStays(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	who := consoletest.Actor(consoletest.Owner)
	d, err := s.Control.Drafts.Save(t.Context(), who, [16]byte{}, 0, "", []byte(`{"slug":"sale","brand":{"color":"#123456"},"windows":[{"from":"2130-05-01T10:00:00Z","length":"1m"}],"strange":1}`))
	if err != nil {
		t.Fatal(err)
	}
	path := "/console/drafts/" + d.ID.String()
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has("<strong>strange</strong>: is not known", `name="opens" type="datetime-local" value="2130-05-01T10:00:00"`)
	s.Post(consoletest.Owner, path, someForm("version", "1")...).RedirectsTo(path + "?done=draft-saved")
	d, err = s.Control.Drafts.Get(t.Context(), who, d.ID)
	if err != nil || !strings.Contains(string(d.Draft.Config), "#123456") {
		t.Errorf("%s, %v", d.Draft.Config, err)
	}
}

// ownHosts are the hosts of the first organization.
func ownHosts(_ context.Context, actor account.Actor) ([]string, error) {
	if actor.Org == account.MainOrg {
		return []string{"queue.example.org"}, nil
	}
	return nil, nil
}

// TestSlugProposed proposes an address for a draft without one.
func TestSlugProposed(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	path := draftOf(s, someForm("slug", "", "title", "Winter sale")...)
	s.Get(consoletest.Owner, path).Want(http.StatusOK).Has(`value="winter-sale"`)
}

// TestCalculator calculates an outflow in the editor, and uses it.
func TestCalculator(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("do", "calculate", "capacity", "500", "stay", "4 min")...).Want(http.StatusOK).Has("Let in 125 per minute", `value="1,200"`)
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("do", "use-capacity", "capacity", "500", "stay", "4 min")...).Want(http.StatusOK).Has(`name="outflow.per_minute" type="text" value="125"`, `name="outflow.max_active" type="text" value="500"`)
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("do", "calculate", "capacity", "500", "stay", "")...).Want(http.StatusOK).Has(`id="e-capacity"`)
}
