package issuer

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofline/proofline/web/issuer/puzzle"
)

// fits returns what solves the puzzle of a page. It opens the sealed form, which visitors cannot.
func (v *visitor) fits(p page) (picks []string) {
	v.t.Helper()
	f, _, err := v.site.open(v.t.Context(), solving, p.fields().Get("flow"))
	if err != nil {
		v.t.Fatalf("%v:\n%s", err, p.body)
	}
	solution := puzzle.New(f.Puzzle.Kind, puzzle.Seed(f.Puzzle.Seed), v.site.words.catalogs[0].say)
	for set := range 1 << len(solution.Options) {
		if solution.IsSolved(puzzle.Picks(set)) { //nolint:gosec // at most 12 options
			for i := range solution.Options {
				if puzzle.Picks(set).Has(i) { //nolint:gosec // as above
					picks = append(picks, strconv.Itoa(i))
				}
			}
			return picks
		}
	}
	v.t.Fatal("a puzzle without solution")
	return nil
}

// tick sends a puzzle's form with options ticked, and a button pressed, if any.
func (v *visitor) tick(p page, picks []string, button ...string) page {
	v.t.Helper()
	form := p.fields()
	form["pick"] = picks
	if len(button) > 0 {
		form.Set(button[0], button[1])
	}
	return v.do(http.MethodPost, p.action(), ours, form)
}

var actionOf = regexp.MustCompile(`<form method="post" action="https://club.example.org(/[^"]*)"|<form method="post" action="(/[^"]*)"`)

func (p page) action() string {
	m := actionOf.FindStringSubmatch(p.body)
	if m == nil {
		return "/no-form"
	}
	return m[1] + m[2]
}

var wrongPicks = []string{"0"} // at least three fit

func TestPuzzle(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	p := v.enter("puzzle", "1", "")
	for _, kind := range []puzzle.Kind{puzzle.Pictures, puzzle.Tones, puzzle.Words} {
		csp := p.header.Get("Content-Security-Policy")
		if strings.Contains(csp, "media-src data:") != strings.Contains(p.body, `src="data:audio/wav;base64,`) {
			t.Errorf("%s: policy %q", kind, csp)
		}
		p = v.tick(p, nil, "kind", string(kind))
		if p.status != http.StatusOK || !strings.Contains(p.body, `class="options `+string(kind)+`"`) {
			t.Fatalf("status %d:\n%s", p.status, p.body)
		}
		c := v.returned(v.tick(p, v.fits(p)), "1")
		if err := v.verify(c, "codes", "1"); err == nil {
			t.Error("the key for accounts signs for a puzzle")
		}
	}
	first := v.returned(v.tick(p, v.fits(p)), "1")
	again := v.enter("puzzle", "1", "fragment")
	if second := v.returned(v.tick(again, v.fits(again)), "1"); !bytes.Equal(first.Nullifier, second.Nullifier) || !bytes.Equal(first.Evidence, second.Evidence) {
		t.Error("a ticket has two credentials")
	}
	b.count("puzzle human %x 1 3")
	other := v.enter("puzzle", "2", "")
	if second := v.returned(v.tick(other, v.fits(other)), "2"); bytes.Equal(first.Nullifier, second.Nullifier) {
		t.Error("two tickets have one nullifier")
	}
	b.count("puzzle human %x 2 3")
	if !strings.Contains(b.log.String(), "msg=solved offer=puzzle kind=words") {
		t.Errorf("the log: %s", b.log.String())
	}
}

// count looks for a line in the signed count.
func (b *bench) count(format string) {
	b.t.Helper()
	v := b.visitor()
	v.addr = "203.0.113.1:1"
	line := fmt.Sprintf(format, roomHash)
	if text := v.do(http.MethodGet, "/issued", "", nil).body; !strings.Contains(text, "\n"+line+"\n") {
		b.t.Errorf("the count lacks %q:\n%s", line, text)
	}
}

// TestPuzzleIsOver sends forms of puzzles too late, twice, and from before a restart: none can be tried again.
func TestPuzzleIsOver(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	p := v.enter("puzzle", "1", "")
	picks := v.fits(p)
	wrong := v.tick(p, wrongPicks)
	v.refused(wrong, http.StatusForbidden, "error.puzzle")
	v.refused(v.tick(p, picks), http.StatusGone, "error.over") // it was tried
	if wrong.fields().Get("flow") == p.fields().Get("flow") {
		t.Error("the same puzzle comes again")
	}
	v.returned(v.tick(wrong, v.fits(wrong)), "1")
	v.refused(v.tick(wrong, wrongPicks), http.StatusGone, "error.over")
	v.returned(v.tick(wrong, v.fits(wrong)), "1") // the page reloaded

	p = v.enter("puzzle", "1", "")
	b.now = b.now.Add(puzzleTime)
	v.returned(v.tick(p, v.fits(p)), "1")
	p = v.enter("puzzle", "1", "")
	b.now = b.now.Add(puzzleTime + time.Second)
	late := v.tick(p, v.fits(p))
	v.refused(late, http.StatusGone, "error.over")
	v.returned(v.tick(late, v.fits(late)), "1")

	p = v.enter("puzzle", "1", "")
	b.now = b.now.Add(time.Minute)
	b.site.sent = newSentForms(b.now)
	v.refused(v.tick(p, v.fits(p)), http.StatusGone, "error.over")

	p = v.enter("puzzle", "1", "")
	b.now = b.now.Add(flowLife + time.Second)
	v.refused(v.tick(p, v.fits(v.enter("puzzle", "1", ""))), http.StatusGone, "error.expired")
}

// TestMoreTime extends the time more than ten times. What is ticked stays, and the earlier form is over.
func TestMoreTime(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	p := v.enter("puzzle", "1", "")
	fits, legend := v.fits(p), regexp.MustCompile(`<legend>.*</legend>`)
	first, question := p, legend.FindString(p.body)
	for range 12 {
		b.now = b.now.Add(puzzleTime)
		p = v.tick(p, []string{"0", "4"}, "more", "1")
		if p.status != http.StatusOK || legend.FindString(p.body) != question || strings.Count(p.body, " checked>") != 2 ||
			!strings.Contains(p.body, html.EscapeString(b.site.words.catalogs[0]["puzzle.extended"])) || fmt.Sprint(v.fits(p)) != fmt.Sprint(fits) {
			t.Fatalf("status %d:\n%s", p.status, p.body)
		}
	}
	v.refused(v.tick(first, fits), http.StatusGone, "error.expired")
	next := v.tick(p, nil, "more", "1")
	v.refused(v.tick(p, fits), http.StatusGone, "error.over")
	v.refused(v.tick(p, nil, "more", "1"), http.StatusGone, "error.over")
	v.returned(v.tick(next, fits), "1")

	style, err := os.ReadFile("style.css")
	if warns := fmt.Sprintf("appear 0s %ds", int((puzzleTime - time.Minute).Seconds())); err != nil || !strings.Contains(string(style), warns) {
		t.Errorf("style.css does not warn after %q", warns)
	}
}

// TestGuesses has many requests try one puzzle at once, and one network solve more than it may.
func TestGuesses(t *testing.T) {
	b := newBench(t)
	p := b.visitor().enter("puzzle", "1", "")
	fits := b.visitor().fits(p)
	var tried sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		tried.Go(func() {
			v, picks := b.visitor(), []string{strconv.Itoa(i)}
			v.addr = fmt.Sprintf("198.51.%d.1:1", i)
			if i == 7 {
				picks = fits
			}
			statuses[i] = v.tick(p, picks).status
		})
	}
	tried.Wait()
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	if counts[http.StatusOK]+counts[http.StatusForbidden] != 1 || counts[http.StatusGone] != 7 {
		t.Errorf("statuses %v: not one alone was taken", statuses)
	}

	v := b.visitor()
	for range 6 { // two minutes' worth
		p = v.enter("puzzle", "2", "")
		v.returned(v.tick(p, v.fits(p)), "2")
	}
	p = v.enter("puzzle", "2", "")
	limited := v.tick(p, v.fits(p))
	v.refused(limited, http.StatusTooManyRequests, "error.limited")
	if limited.fields().Get("flow") != p.fields().Get("flow") || strings.Count(limited.body, " checked>") != len(v.fits(p)) {
		t.Error("the puzzle does not come again as it was")
	}
	elsewhere := b.visitor()
	elsewhere.addr = "203.0.113.1:1"
	elsewhere.returned(elsewhere.tick(limited, v.fits(p)), "2")
	for range 10 { // ten minutes' worth
		p = elsewhere.tick(elsewhere.enter("puzzle", "3", ""), wrongPicks)
		elsewhere.refused(p, http.StatusForbidden, "error.puzzle")
	}
	elsewhere.refused(elsewhere.tick(p, elsewhere.fits(p)), http.StatusTooManyRequests, "error.limited")
}

// TestPuzzleForms sends what no page of this site does.
func TestPuzzleForms(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	p := v.enter("puzzle", "1", "")
	for _, picks := range [][]string{{"10"}, {"-1"}, {"0", "0"}, {"x"}, {""}, {"00"}} {
		v.refused(v.tick(p, picks), http.StatusBadRequest, "error.form")
	}
	v.refused(v.submit(p, "/puzzle/prove"), http.StatusGone, "error.expired")
	v.refused(v.submit(p, "/blindly/puzzle"), http.StatusGone, "error.expired")
	v.refused(v.submit(v.enter("codes", "1", ""), "/codes/puzzle"), http.StatusGone, "error.expired")
	v.refused(v.do(http.MethodPost, "/puzzle/puzzle", theirs, p.fields()), http.StatusForbidden, "error.origin")
	v.refused(v.do(http.MethodPost, "/puzzle", ours, url.Values{}), http.StatusForbidden, "error.origin")
	if p := v.tick(p, nil, "kind", "smells"); p.status != http.StatusForbidden { // no kind, so an answer
		t.Errorf("status %d", p.status)
	}
	for _, ticket := range []string{"4", "5", "6"} {
		p := v.enter("puzzle", ticket, "")
		v.returned(v.tick(p, v.fits(p)), ticket)
	}
	p = v.enter("puzzle", "7", "")
	v.refused(v.tick(p, v.fits(p)), http.StatusConflict, "error.limit")
}

// TestBlindPuzzle: a solved puzzle is good for one blind signature.
func TestBlindPuzzle(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	blinded := bytes.Repeat([]byte{1}, b.site.offers["blindly"].Key.Size())
	p := v.do(http.MethodPost, "/blindly", theirs, url.Values{"blinded": {hex.EncodeToString(blinded)}, "response": {"fragment"}})
	for range 2 {
		done := v.tick(p, v.fits(p))
		if done.location == nil || !strings.HasPrefix(done.location.Fragment, "blind_signature=club+") {
			t.Errorf("status %d, %v", done.status, done.location)
		}
	}
	b.count("blindly club %x 1 0")
}

// TestPageTellsNothing compares what a page says of options that fit with what it says of others, and looks for the
// solution in the page as it may be written.
func TestPageTellsNothing(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	option := regexp.MustCompile(`<label><input type="checkbox" name="pick" value="\d+">(?:<svg [^>]*><path d="[^"]*"/></svg>)?<span>[^<]*</span></label>`)
	sizes := map[string]int{}
	for _, kind := range puzzle.Kinds() {
		for n := range 8 {
			v.addr = fmt.Sprintf("198.51.%d.1:1", n)
			p := v.tick(v.enter("puzzle", "1", ""), nil, "kind", string(kind))
			fits, mask := v.fits(p), 0
			for _, text := range fits {
				i, _ := strconv.Atoi(text)
				mask |= 1 << i
			}
			options := option.FindAllString(p.body, -1)
			if want := map[puzzle.Kind]int{puzzle.Words: 10, puzzle.Pictures: 12, puzzle.Tones: 8}[kind]; len(options) != want {
				t.Fatalf("%s: %d options in one form, want %d:\n%s", kind, len(options), want, p.body)
			}
			plain := regexp.MustCompile(`(flow" value|src|d)="[^"]*"`).ReplaceAllString(p.body, "")
			for _, written := range []string{strings.Join(fits, ","), strings.Join(fits, " "), strings.Join(fits, ""), strconv.FormatInt(int64(mask), 2)} {
				if len(written) > 3 && strings.Contains(plain, written) {
					t.Errorf("%s: the page has %q:\n%s", kind, written, plain)
				}
			}
			if before := sizes[string(kind)]; before != 0 && before != len(p.fields().Get("flow")) {
				t.Errorf("%s: sealed forms of %d and %d bytes", kind, before, len(p.fields().Get("flow")))
			}
			sizes[string(kind)] = len(p.fields().Get("flow"))
		}
	}
}

// TestWordsOfPuzzles: each language has eight words in each group, and none of them twice.
func TestWordsOfPuzzles(t *testing.T) {
	w, err := newWords()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range w.catalogs {
		seen := map[string]string{}
		for key, text := range c {
			if !strings.HasSuffix(key, "_words") {
				continue
			}
			list := strings.Split(text, ", ")
			if len(list) != 8 {
				t.Errorf("%s: %s has %d words", w.tags[i], key, len(list))
			}
			for _, word := range list {
				if word == "" || word != strings.TrimSpace(word) || seen[word] != "" {
					t.Errorf("%s: %q in %s and %s", w.tags[i], word, key, seen[word])
				}
				seen[word] = key
			}
		}
		if len(seen) != 48 {
			t.Errorf("%s: %d words", w.tags[i], len(seen))
		}
	}
}

// TestSentForms forgets forms only when their time is over, and takes no more than it can remember.
func TestSentForms(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := newSentForms(now)
	form := func(id string) *asked { return &asked{ID: id, Until: now.Add(puzzleTime).Unix()} }
	a := form("a")
	for range 100 {
		err := s.take(a, false, now)
		if first := now.Equal(time.Unix(1_800_000_000, 0)); first != (err == nil) {
			t.Fatalf("%v: %v", now, err)
		}
		now = now.Add(11 * time.Second)
		if err := s.take(form(now.String()), true, now); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.newer) + len(s.older); n > 60 {
		t.Errorf("%d forms are remembered", n)
	}
	s.most = len(s.newer)
	if err := s.take(form("b"), true, now); err != errAway { //nolint:errorlint // itself
		t.Error(err)
	}
}
