package page_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/web/page"
)

// TestEveryPage checks the common properties of all pages in every language.
func TestEveryPage(t *testing.T) {
	p := newPages(t, manifest)
	for _, l := range page.Languages() {
		for name, html := range all(t, p, l) {
			name := fmt.Sprintf("%s/%s", l, name)
			doc := parseHTML(t, name, html)
			checkFrame(t, name, l, doc)
			checkPolicy(t, name, doc)
			checkNames(t, name, doc)
			if bad := regexp.MustCompile(`\{[a-z]+\}|ZgotmplZ|%!|<nil>|&amp;amp;|&amp;lt;`).FindString(withoutForms(html)); bad != "" {
				t.Errorf("%s: %q in the page", name, bad)
			}
		}
	}
}

// withoutForms removes the sentences for scripts, which have placeholders.
func withoutForms(html string) string {
	return regexp.MustCompile(` data-forms="[^"]*"`).ReplaceAllString(html, "")
}

func checkFrame(t *testing.T, name string, l page.Lang, doc *element) {
	t.Helper()
	root := doc.named("html")
	dir := map[bool]string{true: "rtl", false: "ltr"}[l == "ar"]
	if len(root) != 1 || root[0].attributes["lang"] != string(l) || root[0].attributes["dir"] != dir {
		t.Errorf("%s: <html> is %v", name, root[0].attributes)
	}
	if h1 := doc.named("h1"); len(h1) != 1 || h1[0].text() == "" {
		t.Errorf("%s has %d headings of the first level", name, len(h1))
	}
	if n := len(doc.named("main")); n != 1 {
		t.Errorf("%s has %d <main>", name, n)
	}
	if title := doc.named("title"); len(title) != 1 || title[0].text() == "" {
		t.Errorf("%s has no title", name)
	}
	ids := map[string]bool{}
	for _, e := range doc.all(func(e *element) bool { return e.has("id") }) {
		if id := e.attributes["id"]; ids[id] {
			t.Errorf("%s has the id %s twice", name, id)
		} else {
			ids[id] = true
		}
	}
}

// checkPolicy fails on anything that the Content-Security-Policy forbids.
func checkPolicy(t *testing.T, name string, doc *element) {
	t.Helper()
	for _, e := range doc.all(func(*element) bool { return true }) {
		for a := range e.attributes {
			if strings.HasPrefix(a, "on") || a == "style" || a == "srcdoc" {
				t.Errorf("%s: <%s> has %s", name, e.name, a)
			}
		}
		switch e.name {
		case "style", "iframe", "object", "embed", "base":
			t.Errorf("%s has <%s>", name, e.name)
		case "script":
			if len(e.children) > 0 || !strings.HasPrefix(e.attributes["src"], "/assets/") {
				t.Errorf("%s has a script inline, or from elsewhere: %v", name, e.attributes)
			}
		case "link", "a":
			if isOrganizers(e) {
				if e.attributes["rel"] != "noopener noreferrer" || e.attributes["target"] != "_blank" {
					t.Errorf("%s: a link of the organizer is %v", name, e.attributes)
				}
				continue
			}
			if e.has("data-way") {
				if e.parent.attributes["data-show"] != "open" || !strings.HasPrefix(e.attributes["href"], "https://shop.example.com") {
					t.Errorf("%s: the way to an open site is %v in %v", name, e.attributes, e.parent.attributes)
				}
				continue
			}
			if h := e.attributes["href"]; !strings.HasPrefix(h, "?") && (!strings.HasPrefix(h, "/") || strings.HasPrefix(h, "//")) {
				t.Errorf("%s: <%s> leads to %q", name, e.name, h)
			}
		case "form":
			isToIssuer := slices.ContainsFunc(confirmations, func(c page.Confirmation) bool { return c.URL == e.attributes["action"] })
			if e.attributes["method"] != "post" || !strings.HasPrefix(e.attributes["action"], "/r/concert/") && !isToIssuer {
				t.Errorf("%s has the form %v", name, e.attributes)
			}
		}
	}
}

// isOrganizers reports whether a link comes from the organizer's settings.
func isOrganizers(e *element) bool {
	for ; e != nil; e = e.parent {
		if e.attributes["class"] == "links" || e.has("data-help") || e.has("data-appeal") {
			return true
		}
	}
	return false
}

// checkNames checks that every control has an accessible name.
func checkNames(t *testing.T, name string, doc *element) {
	t.Helper()
	for _, e := range doc.named("button", "a", "summary", "input", "img", "nav", "aside", "progress") {
		label := e.attributes["aria-label"] + e.text()
		switch {
		case e.name == "img":
			if !e.has("alt") {
				t.Errorf("%s has an image without alt", name)
			}
		case e.name == "progress":
			if e.attributes["aria-hidden"] != "true" { // the same numbers are in words next to it
				t.Errorf("%s has a progress bar without name", name)
			}
		case e.isShown() && label == "":
			t.Errorf("%s: <%s> %v has no name", name, e.name, e.attributes)
		}
	}
}

// TestStates checks the texts of each state, in English.
func TestStates(t *testing.T) {
	p := newPages(t, manifest)
	pages := all(t, p, "en")
	for _, c := range []struct {
		name string
		want []string
		not  []string
	}{
		{"upcoming", []string{"The line opens at 12:30 UTC", "People are let in from 13:00 UTC.", "As of 12:03 UTC."}, []string{"Join the line"}},
		{"joinable", []string{"Join the line", "no advantage"}, []string{"12:03:07", "Check my place"}},
		{"joinable-closes", []string{"You can join until 2030-05-02 18:03 UTC.", "Doors open at 19:00."}, nil},
		{"upcoming-slots", []string{"The time from 12:30 UTC to 13:30 UTC is cut into 6 slots, which take turns", "There is no need to hurry"}, []string{"At 12:03", "counts no more"}},
		{"joinable-slots", []string{"is cut into 6 slots", "At 12:03 UTC it is slot 3 of 6, until 12:13 UTC. So far 400 people are in it. As it stands, its places are about 1.5 times as good as those of the fullest slot."}, []string{"being a few seconds faster"}},
		{"joinable-slots-fullest", []string{"So far 800 lots are in it. As it stands, no slot is fuller"}, []string{"times as good"}},
		{"joinable-slots-same", []string{"about as good as those of the fullest slot."}, []string{"times as good"}},
		{"joinable-slots-first", []string{"slot 1 of 6, until 12:12 UTC. Nobody is in it yet."}, []string{"As it stands"}},
		{"waiting-slots", []string{"At most 3,210 people are in earlier groups.", "You came in slot 3 of 6, from 12:03 UTC to 12:13 UTC. Slots take turns", "Your place has 2 lots in the draw."}, []string{"same chance"}},
		{"drawn-slots", []string{"At most 1,020 people are ahead of you.", "You came in slot 1 of 6", "Your place has 1 lot in the draw."}, []string{"same chance"}},
		{"joinable-issued", []string{"You are confirmed", "How many seats do you need?"}, []string{"As of"}},
		{"waiting", []string{
			"You are in the group that joined between 12:03 UTC and 12:04 UTC", "3,210 people are in earlier groups. Places are drawn at 12:04 UTC.",
			"Your turn is likely between 12:20 UTC and 12:31 UTC.", "So far 412 people are in it.", "5 minutes", "Leave the line",
		}, []string{"slot", "lot in", "At most", "Your place is 4,211", "being drawn", "paused"}},
		{"waiting-instant", []string{"You joined at 12:03:07 UTC", "at the same moment as you has the same chance"}, []string{"joined between", "Earlier groups go first"}},
		{"drawn-instant", []string{"at the same moment as you had the same chance"}, []string{"joined between"}},
		{"revoked-branded", []string{"contact the organizer and give your ticket number", "Help"}, nil},
		{"waiting-brief", []string{"You are in the group that joined between 12:03:05 UTC and 12:03:25 UTC", "drawn at 12:03:31 UTC."}, nil},
		{"waiting-first", []string{"Nobody is in an earlier group.", "So far you are the only one in it.", "loads again every 30 seconds. Stop"}, nil},
		{"waiting-paused", []string{"Letting people in is paused."}, []string{"likely between"}},
		{"waiting-drawing", []string{"Your group is closed. Its places are being drawn."}, []string{"Places are drawn at", "So far"}},
		{"waiting-late", []string{"The draw is taking longer than planned."}, []string{"likely between", "still growing"}},
		{"drawn", []string{"Your place is 4,211", "1,020 people are ahead of you.", "Places up to 3,190 have been called.", "likely between 12:20 UTC and 12:31 UTC."}, []string{"paused", "slowly"}},
		{"drawn-next", []string{"You are next.", "likely between 12:03 UTC and 12:04 UTC."}, nil},
		{"drawn-slower", []string{"more slowly than announced"}, nil},
		{"drawn-paused", []string{"Letting people in is paused."}, []string{"likely between"}},
		{"called", []string{"It is your turn", "Go in by 12:07 UTC.", "Go in now", "This takes you to shop.example.com."}, []string{"Less than a minute", "paused"}},
		{"called-late", []string{"Less than a minute left."}, nil},
		{"called-paused", []string{"Your time to go in stands still.", "You have 4 minutes to go in."}, []string{"Go in by"}},
		{"called-claims-frozen", []string{"It is your turn", "Going in is stopped for a moment. You lose no time", "You have 4 minutes to go in."}, []string{"Go in now", "Go in by", "is paused"}},
		{"rehearsal", []string{"This is a rehearsal.", "Your place is 4,211"}, nil},
		{"joinable-branded", []string{"Everybody is welcome", "Doors open early.", "Ask us.", "Help", "Privacy", "Imprint", "All rights reserved.", "Deutsch", "English"}, []string{"Espa\u00f1ol", "rehearsal"}},
		{"drawn-branded", []string{"Everybody is welcome", "Ask us.", "All rights reserved."}, []string{"Doors open early."}},
		{"called-at-home", []string{"Go in now"}, []string{"takes you to"}},
		{"admitted", []string{"You are in", "You went in at 12:01 UTC.", "Continue"}, []string{"Leave"}},
		{"admitted-at-home", []string{"You are in"}, []string{"Continue"}},
		{"over", []string{"You were let in", "You went in at 12:01 UTC.", "Take a new place", "Check my place"}, []string{"Continue", "Nobody can join"}},
		{"over-ended", []string{"You were let in", "Nobody can join"}, []string{"Take a new place"}},
		{"missed-full", []string{"Your turn has passed", "The line is full right now."}, []string{"Take a new place", "any more"}},
		{"missed", []string{"Your turn has passed", "ran out at 12:01 UTC.", "Nobody can join"}, []string{"Take a new place"}},
		{"missed-again", []string{"Your turn has passed", "Take a new place"}, []string{"Nobody can join"}},
		{"left", []string{"You left the line", "Take a new place"}, nil},
		{"revoked", []string{"Your place was withdrawn", "at 12:01 UTC", "contact Fans & Friends and give your ticket number: 6f9619ff-8b86-8011-b42d-00cf4fc964ff."}, []string{"Take a new place", "Nobody can join"}},
		{"revoked-appeal", []string{"one person had several places", "turn to help@example.com and give your ticket number: 6f9619ff-8b86-8011-b42d-00cf4fc964ff."}, []string{"contact Fans & Friends"}},
		{"closed", []string{"This line is closed"}, nil},
		{"ended", []string{"This line has ended", "Nobody is let in"}, []string{"Check my place"}},
		{"ended-waiting", []string{"It ended before you went in.", "Check my place"}, nil},
		{"check-none", []string{"nothing to check"}, nil},
		{"error-failed", []string{"Something went wrong here", "Try again", "01J9ZK3VQ7"}, nil},
		{"error-busy", []string{"One moment, please", "Try again"}, []string{"Number of this error"}},
	} {
		text := parseHTML(t, c.name, pages[c.name]).text()
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", c.name, want, text)
			}
		}
		for _, not := range c.not {
			if strings.Contains(text, not) {
				t.Errorf("%s says %q", c.name, not)
			}
		}
	}
}

// TestStatesOfTheLine checks that the test pages include every state.
func TestStatesOfTheLine(t *testing.T) {
	for _, s := range []page.State{
		page.Upcoming, page.Joinable, page.Full, page.Waiting, page.Drawn, page.Called, page.Admitted, page.Over,
		page.Missed, page.Left, page.Revoked, page.Closed, page.Ended,
	} {
		if _, ok := lines[string(s)]; !ok {
			t.Errorf("no page of %s", s)
		}
	}
}

// TestNoPositionBeforeDraw checks that no position is shown before the draw.
func TestNoPositionBeforeDraw(t *testing.T) {
	p := newPages(t, manifest)
	for name, html := range all(t, p, "en") {
		v, isLine := lines[name]
		if !isLine {
			continue
		}
		drawn := v.Ticket != nil && v.Ticket.Position > 0
		if got := strings.Contains(html, "data-position="); got != drawn {
			t.Errorf("%s: position in the page is %t, want %t", name, got, drawn)
		}
	}
}

// TestForms checks that each state has the right buttons and no others.
func TestForms(t *testing.T) {
	p := newPages(t, manifest)
	forms := map[page.State][]string{
		page.Joinable: {"line"}, page.Waiting: {"leave"}, page.Drawn: {"leave"}, page.Called: {"claim"}, page.Admitted: {"claim"},
	}
	for name, html := range all(t, p, "en") {
		v, isLine := lines[name]
		want := forms[v.State]
		if v.State == page.Called && v.Ticket.Extend > 0 {
			want = []string{"claim", "extend"}
		}
		if v.ClaimsFrozen {
			want = nil
		}
		if v.Without == page.Joinable {
			want = []string{"line"}
		}
		if !isLine || v.Vouched || v.State == page.Admitted && v.Target == "" {
			want = nil
		}
		if v.State != page.Upcoming && (v.Own == "" || v.Ticket != nil) {
			for range v.Works {
				want = append(slices.Clone(want), "line") // which sets the cookie
			}
		}
		if v.Issued != nil {
			want = []string{"credential"}
		}
		for _, c := range v.Confirmations {
			if v.Own == "" && v.Ticket == nil || v.Ticket != nil && !c.IsLot {
				want = append(slices.Clone(want), "line") // which sets the cookie
			} else {
				want = append(slices.Clone(want), c.URL)
			}
		}
		if got, needed := strings.Contains(html, "/assets/work.a1.js"), len(v.Works) > 0; got != needed {
			t.Errorf("%s loads the script of tasks: %t, want %t", name, got, needed)
		}
		var got []string
		for _, form := range parseHTML(t, name, html).named("form") {
			got = append(got, strings.TrimPrefix(form.attributes["action"], "/r/concert/"))
		}
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%s has forms %v, want %v", name, got, want)
		}
	}
}

// TestFragment checks that the fragment equals the <main> of the page, byte for byte.
func TestFragment(t *testing.T) {
	p := newPages(t, manifest)
	for name, v := range lines {
		var whole, fragment bytes.Buffer
		if err := errors.Join(p.Visitor(&whole, v), p.Fragment(&fragment, v)); err != nil {
			t.Fatal(err)
		}
		if f := fragment.String(); !strings.HasPrefix(f, "<main ") || !strings.HasSuffix(f, "</main>") || !strings.Contains(whole.String(), f) {
			t.Errorf("%s: the fragment is not the <main> of the page:\n%s", name, f)
		}
	}
}

// TestRefresh checks that a page reloads itself only if the visitor chose it and the state can change.
func TestRefresh(t *testing.T) {
	p := newPages(t, manifest)
	for name, v := range lines {
		changes := slices.Contains([]page.State{page.Upcoming, page.Joinable, page.Full, page.Waiting, page.Drawn, page.Called}, v.State)
		for _, refresh := range []time.Duration{0, 45 * time.Second} {
			v.Refresh = refresh
			var b bytes.Buffer
			if err := p.Visitor(&b, v); err != nil {
				t.Fatal(err)
			}
			got := strings.Contains(b.String(), `<meta http-equiv="refresh" content="45">`)
			if want := refresh > 0 && changes; got != want {
				t.Errorf("%s with refresh %v: reload %t, want %t", name, refresh, got, want)
			}
		}
	}
}

// TestOpening checks that the page before the opening contains the page at the opening.
func TestOpening(t *testing.T) {
	p := newPages(t, manifest)
	html := all(t, p, "de")["upcoming"]
	open := parseHTML(t, "upcoming", html).named("template")
	if len(open) != 1 {
		t.Fatalf("%d templates", len(open))
	}
	if main := open[0].named("main"); len(main) != 1 || main[0].attributes["data-state"] != "joinable" {
		t.Errorf("the template holds %v", main)
	}
}

// TestEscapes checks that hostile values are escaped.
func TestEscapes(t *testing.T) {
	p := newPages(t, manifest)
	const attack = `"><script>alert(1)</script><p onclick="`
	v := drawn()
	v.Room = page.Room{Slug: attack, Title: attack, Message: page.Message{Text: page.Text{Words: attack, Lang: attack}, Wanted: []string{attack}}, Origin: attack, VKey: attack, Logo: "javascript:alert(1)", Dark: "javascript:alert(1)", Brand: "javascript:alert(1)"}
	text := page.Text{Words: attack, Lang: attack}
	v.Room.Texts = page.Texts{text, text, text, text, "javascript:alert(1)", " JaVaScRiPt:alert(1)", "data:text/html,<script>alert(1)</script>"}
	v.Target = "javascript:alert(1)//" + attack
	v.HasGate, v.Open, v.Way = true, true, v.Target
	for _, state := range []page.State{page.Joinable, page.Waiting, page.Drawn, page.Called, page.Left} {
		v.State = state
		var b bytes.Buffer
		if err := p.Visitor(&b, v); err != nil {
			t.Fatal(err)
		}
		doc := parseHTML(t, string(state), b.String())
		for _, e := range doc.all(func(*element) bool { return true }) {
			if e.name == "script" && len(e.children) > 0 || e.has("onclick") {
				t.Errorf("%s: <%s> of an attack", state, e.name)
			}
			if src := strings.ToLower(e.attributes["src"] + e.attributes["href"] + e.attributes["srcset"]); strings.Contains(src, "javascript:") || strings.Contains(src, "data:") {
				t.Errorf("%s: <%s> leads to %q", state, e.name, src)
			}
		}
	}
}

// failingWriter fails on every write.
type failingWriter struct{}

var errFull = errors.New("full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestErrors(t *testing.T) {
	if _, err := page.New([]byte(`{"page.js": "page.a1.js"}`)); !errors.Is(err, page.ErrManifest) {
		t.Errorf("incomplete manifest: %v", err)
	}
	if _, err := page.New([]byte(`no JSON`)); err == nil {
		t.Error("a manifest that is no JSON is taken")
	}
	p := newPages(t, manifest)
	if err := p.Visitor(failingWriter{}, view(page.Joinable)); !errors.Is(err, errFull) {
		t.Errorf("writer that fails: %v", err)
	}
	if err := p.Visitor(io.Discard, view("asleep")); err == nil {
		t.Error("an unknown state is rendered")
	}
	if err := p.Error(io.Discard, page.ErrorView{Kind: "odd"}); err == nil {
		t.Error("an unknown kind of error is rendered")
	}
}

// TestUnknownLanguage falls back to English.
func TestUnknownLanguage(t *testing.T) {
	v := view(page.Joinable)
	v.Lang = "xx"
	var b bytes.Buffer
	if err := newPages(t, manifest).Visitor(&b, v); err != nil || !strings.Contains(b.String(), `<html lang="en" dir="ltr">`) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// TestConcurrent renders in all languages concurrently, for the race detector.
func TestConcurrent(t *testing.T) {
	p := newPages(t, manifest)
	var rendering sync.WaitGroup
	for _, l := range page.Languages() {
		rendering.Go(func() {
			v := withTicket(page.Waiting)
			v.Lang = l
			for range 20 {
				if err := p.Visitor(io.Discard, v); err != nil {
					t.Error(err)
				}
			}
		})
	}
	rendering.Wait()
}

func BenchmarkVisitor(b *testing.B) {
	p, err := page.New([]byte(manifest))
	if err != nil {
		b.Fatal(err)
	}
	v := withTicket(page.Waiting)
	v.Lang = "en"
	for b.Loop() {
		if err := p.Visitor(io.Discard, v); err != nil {
			b.Fatal(err)
		}
	}
}

// TestGate checks that the page says when the gate is open, with a link to the site if it is known.
func TestGate(t *testing.T) {
	t.Parallel()
	p := newPages(t, manifest)
	const words = "Right now the site lets people in without waiting."
	for name, want := range map[string]string{
		"joinable": "", "waiting-shut": "", "joinable-open": words + " Go to shop.example.com", "drawn-open": words,
	} {
		v := lines[name]
		v.Lang = "en"
		var b bytes.Buffer
		if err := p.Visitor(&b, v); err != nil {
			t.Fatal(err)
		}
		doc := parseHTML(t, name, b.String())
		var got string
		for _, e := range doc.all(func(e *element) bool { return e.attributes["data-show"] == "open" }) {
			got += e.text()
		}
		if got != want || doc.named("main")[0].has("data-gate") != v.HasGate {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
	}
}
