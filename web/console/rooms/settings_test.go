package rooms_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// settingsOf reads the form of a page, as names and values.
func settingsOf(a consoletest.Answer, change ...string) []string {
	a.Helper()
	form := map[string]string{"do": "save"}
	for _, part := range strings.Split(a.Body, "<input ")[1:] {
		name, value := attribute(part, "name"), attribute(part, "value")
		if isOff := attribute(part, "type") == "checkbox" && !strings.Contains(strings.Split(part, ">")[0], " checked"); name != "" && !isOff {
			form[name] = value
		}
	}
	for _, part := range strings.Split(a.Body, "<textarea ")[1:] {
		_, rest, _ := strings.Cut(part, ">")
		text, _, _ := strings.Cut(rest, "</textarea>")
		form[attribute(part, "name")] = text
	}
	for i := 0; i+1 < len(change); i += 2 {
		if change[i+1] == "-" {
			delete(form, change[i])
			continue
		}
		form[change[i]] = change[i+1]
	}
	var pairs []string
	for name, value := range form {
		pairs = append(pairs, name, value)
	}
	return pairs
}

func attribute(tag, name string) string {
	tag, _, _ = strings.Cut(tag, ">")
	_, rest, ok := strings.Cut(" "+tag, " "+name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

const settingsPath = "/console/rooms/sale/settings"

// TestSettings changes each setting of an open room, and checks which changes are public.
func TestSettings(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	opens := time.Now().Add(-10 * time.Minute).UTC().Truncate(time.Second)
	change := opens.Add(time.Hour)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale", Starts: at(time.Now().Add(2 * time.Hour)), Windows: []room.WindowRule{{Length: room.Duration(time.Minute)}, {From: &change, Length: room.Duration(10 * time.Second)}}})
	opens = *r.Config().Opens
	size := func() uint64 { return r.Snapshot().Size }
	save := func(pairs ...string) {
		t.Helper()
		page := s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK)
		s.Post(consoletest.Operator, settingsPath, append(settingsOf(page, pairs...), "confirmed", "1")...).RedirectsTo(settingsPath + "?done=settings-saved")
	}
	first := s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK).Has(`<span class="badge">fixed</span>`, "public", `value="10 s"`, `value="Sale"`, "<dt>Time to go in</dt><dd>5 min</dd>", "<dt>Beacon</dt><dd>none</dd>")
	if strings.Contains(first.Body, "windows[1]") {
		t.Error("a window that is open can be changed")
	}
	before := size()
	s.Post(consoletest.Operator, settingsPath, settingsOf(first)...).RedirectsTo(settingsPath + "?done=settings-same")
	save("title", "Winter sale", "max_waiting", "5,000", "targets", "https://shop.example.com\r\nhttps://shop.example.org/a")
	if c := r.Config(); c.Title != "Winter sale" || c.MaxWaiting != 5000 || !slices.Equal(c.Targets, []string{"https://shop.example.com", "https://shop.example.org/a"}) || size() != before {
		t.Errorf("%+v, %d entries", c, size()-before)
	}
	save("outflow.per_minute", "7")
	save("outflow.max_active", "70")
	closes := opens.Add(3 * time.Hour)
	save("closes", closes.Format("2006-01-02T15:04:05.999"))
	later := opens.Add(90 * time.Minute)
	save("windows[0].length", "30 s", "windows[1].from", later.Format(time.RFC3339Nano), "windows[1].length", "5 min")
	c := r.Config()
	want := []room.WindowRule{{From: &opens, Length: room.Duration(time.Minute)}, {From: &change, Length: room.Duration(30 * time.Second)}, {From: &later, Length: room.Duration(5 * time.Minute)}}
	if diff := cmp.Diff(want, c.Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	if c.Outflow != (room.Outflow{PerMinute: 7, MaxActive: 70}) || c.Closes == nil || !c.Closes.Equal(closes) {
		t.Errorf("%+v", c)
	}
	if got := r.Snapshot().Counts.Amends; got != 4 {
		t.Errorf("%d amendments", got)
	}
}

// TestSettingsWindows removes and moves windows, before the room opens and while it is open.
func TestSettingsWindows(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	opens := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	in := func(d time.Duration) *time.Time { return at(opens.Add(d)) }
	text := func(d time.Duration) string { return opens.Add(d).Format(format.MomentLayout) }
	rules := []room.WindowRule{{From: &opens, Length: room.Duration(7 * time.Minute)}, {From: in(30 * time.Minute), Length: room.Duration(time.Second)}, {From: in(time.Hour), Length: room.Duration(time.Minute)}}
	for name, test := range map[string]struct {
		change []string
		want   []room.WindowRule
	}{
		"first length": {[]string{"windows[0].length", "5 min"}, []room.WindowRule{{From: &opens, Length: room.Duration(5 * time.Minute)}, rules[1], rules[2]}},
		"last gone": {
			[]string{"windows[2].from", "-", "windows[2].length", "-"},
			[]room.WindowRule{rules[0], rules[1], {From: rules[2].From, Length: rules[1].Length}},
		},
		"all but the first gone": {
			[]string{"windows[1].from", "-", "windows[1].length", "-", "windows[2].from", "-", "windows[2].length", "-"},
			[]room.WindowRule{rules[0], {From: in(28 * time.Minute), Length: rules[0].Length}},
		},
		"second later": {
			[]string{"windows[1].from", text(40 * time.Minute)},
			[]room.WindowRule{rules[0], {From: in(28 * time.Minute), Length: rules[0].Length}, {From: in(40 * time.Minute), Length: rules[1].Length}, rules[2]},
		},
		"second earlier": {
			[]string{"windows[1].from", text(20 * time.Minute)},
			[]room.WindowRule{rules[0], {From: in(20 * time.Minute), Length: rules[1].Length}, rules[2]},
		},
		"one more": {
			[]string{"windows[3].from", text(2 * time.Hour), "windows[3].length", "1 h"},
			append(slices.Clone(rules), room.WindowRule{From: in(2 * time.Hour), Length: room.Duration(time.Hour)}),
		},
	} {
		slug := strings.ReplaceAll(name, " ", "-")
		path := "/console/rooms/" + slug + "/settings"
		r := s.Create(consoletest.Owner, room.Config{Slug: slug, Windows: rules})
		page := s.Get(consoletest.Owner, path).Want(http.StatusOK).Lacks(">fixed<")
		s.Post(consoletest.Owner, path, append(settingsOf(page, test.change...), "confirmed", "1")...).RedirectsTo(path + "?done=settings-saved")
		if diff := cmp.Diff(test.want, r.Config().Windows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSettingsOfSlots: the first window of a room with slots is fixed before it opens, and shown with its slots.
func TestSettingsOfSlots(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Post(consoletest.Owner, "/console/rooms/new", someForm("do", "publish", "confirmed", "1", "slots", "10 min",
		"methods", "club signed 861dd36be253a9b164c4e782be4d111739d0207bbcd9d58e5f8859027145dc08 0", "lots", "club")...).Want(http.StatusSeeOther)
	r, err := s.Control.Room(t.Context(), consoletest.Actor(consoletest.Owner), "sale")
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Config(); c.Slots == nil || *c.Slots != room.Duration(10*time.Minute) || !slices.Equal(c.Lots, []string{"club"}) {
		t.Errorf("published %+v", c)
	}
	page := s.Get(consoletest.Owner, settingsPath).Want(http.StatusOK).Has(">fixed<", "or have slots", "Slots of the first window", "10 min", "Lots for credentials")
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "windows[0].from", "2130-05-01T11:45:00")...).Want(http.StatusBadRequest).Has(`id="e-windows[0].from"`, "or a first one with slots")
	s.Post(consoletest.Owner, settingsPath, append(settingsOf(page, "windows[0].length", "5 min"), "confirmed", "1")...).Want(http.StatusSeeOther)
	if rules := r.Config().Windows; len(rules) != 2 || rules[1].Length != room.Duration(5*time.Minute) {
		t.Errorf("windows %+v", rules)
	}
}

// TestSettingsRefused shows each problem next to its field, and changes nothing.
func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	change := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale", Closes: at(change.Add(time.Hour)), Windows: []room.WindowRule{{Length: room.Duration(time.Minute)}, {From: &change, Length: room.Duration(time.Second)}}})
	before := r.Config()
	page := s.Get(consoletest.Owner, settingsPath).Want(http.StatusOK)
	early := time.Now().Add(-time.Minute).UTC().Format(format.MomentLayout)
	for field, wrong := range map[string]string{
		"title": strings.Repeat("x", 201), "outflow.per_minute": "0", "outflow.max_active": "some", "closes": early,
		"windows[0].length": "1 ms", "windows[0].from": early, "max_waiting": "-3", "targets": "javascript:alert(1)",
	} {
		s.Post(consoletest.Owner, settingsPath, settingsOf(page, field, wrong)...).Want(http.StatusBadRequest).Has(`id="e-`+field+`"`, strings.TrimSuffix(wrong, "Z"))
	}
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "title", "")...).Want(http.StatusBadRequest).Has(`id="e-title"`)
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "closes", "")...).Want(http.StatusBadRequest).Has(`id="e-closes"`)
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "title", script, "targets", script, "closes", script, "windows[0].from", script, "windows[0].length", script)...).Want(http.StatusBadRequest).Lacks("<script>alert")
	// A repeated rule shifts the others: the problem is still shown at its row.
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "windows[0].from", change.Add(10*time.Minute).Format(format.MomentLayout), "windows[0].length", "1 ms")...).Want(http.StatusBadRequest).Has(`id="e-windows[0].length"`)
	if diff := cmp.Diff(before, r.Config()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "do", "nonsense")...).Want(http.StatusBadRequest)
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "do", "add-window")...).Want(http.StatusOK).Has("windows[1].length")
	s.Post(consoletest.Owner, settingsPath, settingsOf(page, "do", "remove-window:0")...).Want(http.StatusOK).Lacks("windows[0].length")
	for who, status := range map[string]int{consoletest.Stranger: http.StatusNotFound, consoletest.Viewer: http.StatusForbidden} {
		s.Get(who, settingsPath).Want(status)
		s.Post(who, settingsPath, settingsOf(page, "title", "Taken over", "in_organization", consoletest.Identities()[who].Organization.Slug)...).Want(status)
	}
	s.Get(consoletest.Owner, "/console/rooms/nothing/settings").Want(http.StatusNotFound)
}

// TestSettingsTogether has two people change the same room: the second one sees both versions, and nothing is
// lost.
func TestSettingsTogether(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale"})
	mine := s.Get(consoletest.Owner, settingsPath).Want(http.StatusOK)
	theirs := s.Get(consoletest.Operator, settingsPath).Want(http.StatusOK)
	s.Post(consoletest.Owner, settingsPath, append(settingsOf(mine, "outflow.per_minute", "500"), "confirmed", "1")...).RedirectsTo(settingsPath + "?done=settings-saved")
	conflict := s.Post(consoletest.Operator, settingsPath, settingsOf(theirs, "outflow.per_minute", "90", "title", "Winter")...).Want(http.StatusConflict).
		Has("This room was changed in the meantime", ">500<", ">90<", ">Winter<")
	if got := r.Config().Outflow.PerMinute; got != 500 {
		t.Errorf("outflow %d", got)
	}
	s.Post(consoletest.Operator, settingsPath, settingsOf(theirs)...).Want(http.StatusConflict) // unchanged in the form, but outdated
	s.Post(consoletest.Operator, settingsPath, append(settingsOf(conflict), "confirmed", "1")...).RedirectsTo(settingsPath + "?done=settings-saved")
	if c := r.Config(); c.Outflow.PerMinute != 90 || c.Title != "Winter" {
		t.Errorf("%+v", c)
	}
}

// TestSettingsEnded leaves only the settings that are not in the transcript.
func TestSettingsEnded(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Title: "Sale"})
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	size := r.Snapshot().Size
	page := s.Get(consoletest.Owner, settingsPath).Want(http.StatusOK).Lacks("outflow.per_minute", "add-window", `name="closes"`)
	s.Post(consoletest.Owner, settingsPath, append(settingsOf(page, "title", "Over", "outflow.per_minute", "9", "closes", "2130-01-01T00:00"), "confirmed", "1")...).RedirectsTo(settingsPath + "?done=settings-saved")
	if c := r.Config(); c.Title != "Over" || r.Snapshot().Size != size {
		t.Errorf("%+v, %d entries", c, r.Snapshot().Size-size)
	}
}
