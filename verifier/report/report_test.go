package report

import (
	"bytes"
	"flag"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/stats"
)

var update = flag.Bool("update", false, "write the golden files")

const origin = "queue.example.com/r/sale"

func newKeys(t testing.TB) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, "honest")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// audited audits a published log with a listener.
func audited(t testing.TB, files roomtest.Files, trust verifier.Trust) *Audit {
	t.Helper()
	recorder := Record(files)
	var finder findings.Finder
	listening := trust
	listening.OnEntry = finder.Add
	r, err := verifier.Audit(t.Context(), recorder, listening)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := files.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Audit{
		Report: r, Story: recorder.Story(), Findings: finder.Findings(), Trust: trust, Checkpoint: signed, Source: "https://" + origin,
		Command: "proofline-verify audit https://" + origin, Program: "proofline-verify v1.2.3",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func written(t testing.TB, a *Audit) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, a); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func publish(t testing.TB, keys *roomtest.Keys, entries [][]byte) roomtest.Files {
	t.Helper()
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// witnessed returns a small room whose draws were witnessed, and an auditor who knows the beacon and two of
// three witnesses.
func witnessed(t testing.TB) *Audit {
	t.Helper()
	keys := newKeys(t)
	r := waiting(keys)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	trust := verifier.Trust{VKey: keys.VKey, Beacons: [][32]byte{keys.Chain.Chain().Hash()}}
	for _, w := range keys.Witnesses[:2] {
		trust.Witnesses = append(trust.Witnesses, w.String())
	}
	return audited(t, publish(t, keys, r.Entries()), trust)
}

// waiting returns a room whose draws wait for rounds and witnesses.
func waiting(keys *roomtest.Keys) *roomtest.Room {
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r := roomtest.Open(keys, keys.Witnessed())
	r.Append(&fairness.Amend{Time: at(-60), Change: fairness.ChangeMessage, Message: [fairness.HashSize]byte{1}})
	r.Join(at(1), 5)
	r.Join(at(59), 3)
	r.Settle(at(60))
	r.Call(at(67), 4)
	r.Admit(at(67), r.At(2))
	r.Skip(at(67), r.At(3), fairness.Left)
	r.Append(&fairness.Amend{Time: at(68), Change: fairness.ChangeOutflow, Outflow: fairness.Outflow{PerMinute: 300, MaxActive: 50}})
	r.Append(&fairness.Amend{Time: at(69), Change: fairness.ChangePause})
	r.Append(&fairness.Amend{Time: at(69), Change: fairness.ChangePause, Claims: true})
	r.Join(at(69), 2)
	r.Freeze(at(70))
	r.Append(&fairness.Amend{Time: at(70), Change: fairness.ChangeResume})
	r.Append(&fairness.Amend{Time: at(70), Change: fairness.ChangeWindows, Closes: fairness.Never,
		Windows: []fairness.WindowRule{{From: at(100), Length: 5_000}}})
	r.DrawBy(at(71), keys.Witnesses[0], keys.Witnesses[1])
	r.Assign(-1)
	r.Skip(at(98), r.At(1), fairness.NoShow)
	r.Skip(at(98), r.At(5), fairness.Revoked)
	r.Join(at(107), 4)
	r.Settle(at(110))
	r.Call(at(117), 12)
	r.Admit(at(117), r.At(9))
	r.Admit(at(118), r.At(12))
	r.End(at(150))
	return r
}

// broken returns a room that lacks one of its arrivals.
func broken(t testing.TB) *Audit {
	t.Helper()
	keys := newKeys(t)
	entries := roomtest.Small(keys, keys.Policy()).Entries()
	return audited(t, publish(t, keys, append(entries[:3:3], entries[4:]...)), verifier.Trust{})
}

// consistent returns a valid room without a beacon.
func consistent(t testing.TB) *Audit {
	t.Helper()
	keys := newKeys(t)
	return audited(t, publish(t, keys, roomtest.Small(keys, keys.Policy()).Entries()), verifier.Trust{VKey: keys.VKey})
}

func TestGolden(t *testing.T) {
	for name, a := range map[string]*Audit{"witnessed": witnessed(t), "broken": broken(t)} {
		file := filepath.Join("testdata", name+".html")
		got := written(t, a)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s: (-want +got; -update writes it)\n%s", name, diff)
		}
	}
}

// TestDoorInPage: the page says what a join needed, as the text does, and nothing in a room without methods.
func TestDoorInPage(t *testing.T) {
	a := consistent(t)
	const heading = `<h2 id="door">The door</h2>`
	if strings.Contains(written(t, a), heading) {
		t.Error("a door without methods")
	}
	a.Report.Lanes = []verifier.Lane{{Name: "general", Needs: []string{"club"}}}
	a.Report.Methods = []verifier.Method{{Method: credential.Method{Name: "club", Kind: credential.Signed, Key: "0a<b>", Limit: 5000}, Shown: 1234}}
	html := written(t, a)
	_, section, _ := strings.Cut(html, heading)
	section, _, _ = strings.Cut(section, "</section>")
	lines := Door(a.Report)
	if len(lines) != 5 || strings.Count(section, "<li>") != len(lines) {
		t.Fatalf("%d lines in %q", len(lines), section)
	}
	for _, line := range lines {
		if !strings.Contains(section, "<li>"+template.HTMLEscapeString(line)+"</li>") {
			t.Errorf("the page does not say %q: %s", line, section)
		}
	}
	if a.Report.OK = false; strings.Contains(written(t, a), heading) {
		t.Error("a failed audit describes the door")
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name  string
		audit *Audit
		want  []string
		not   []string
	}{
		{"witnessed", witnessed(t), []string{
			"Verified: the queue followed its published rules", "Level 3 of 3: witnessed", "all 14 places in 3 draws",
			"<strong>witness0.example.org</strong>, which the auditor knows to be independent; signed for 3 draws",
			"<strong>witness2.example.org</strong>, <strong>named only by the room</strong>",
			"The beacon “roomtest”. The auditor states", "called visitors could not go in, for 1 s. Called visitors lost no time to claim.", "At least 2 of them had signed in time for 3 of 3 draws, and at least 2 that the auditor knows for 3 of these.", "at most 300 a minute instead of 600; at the site at once: at most 50 instead of any number.",
			"given to this audit from another source", "place 1", `<a href="https://queue.example.com/r/sale/tile/entries/000.p/`,
		}, []string{"Not verified", "What failed", "from the record itself"}},
		{"level 1", consistent(t), []string{
			"Consistent: the record follows its published rules, but the draws could have been chosen", "Level 1 of 3: consistent", `class="verdict partly"`,
			"used no public randomness",
		}, []string{"Verified"}},
		{"broken", broken(t), []string{
			"Not verified:", "1 of 31 checks failed", "Nothing about the fairness of this room",
			"<strong>Arrivals are inside their windows, numbered without gaps</strong>: failed.",
			"bundle with entry 3</a>", "do not rely on them", "<strong>from the record itself</strong>",
		}, []string{"Level 1", "What is proven</h2>\n<ul"}},
	} {
		page := written(t, c.audit)
		for _, text := range c.want {
			if !strings.Contains(page, text) {
				t.Errorf("%s: %q is not there", c.name, text)
			}
		}
		for _, text := range c.not {
			if strings.Contains(page, text) {
				t.Errorf("%s: %q is there", c.name, text)
			}
		}
	}
}

// A page loads nothing, and has no scripts.
func TestSelfContained(t *testing.T) {
	active := regexp.MustCompile(`(?i)<(script|link|img|iframe|object|embed|base|form|video|audio|use|image)\b|url\(|@import|\son[a-z]+=|javascript:|src=`)
	for _, a := range []*Audit{witnessed(t), broken(t)} {
		if found := active.FindString(written(t, a)); found != "" {
			t.Errorf("there is %q", found)
		}
	}
}

// Places of nobody are not counted as called, and tickets are whose places are stated after their call.
func TestCalledTickets(t *testing.T) {
	r := Record(nil)
	r.story.Policy = &fairness.Policy{Slots: 1000, Lanes: []fairness.LaneRule{{Name: "general"}}}
	for _, e := range []fairness.Entry{
		&fairness.Assign{Lane: "general", Position: 2, Ticket: fairness.Ticket{1}},
		&fairness.Assign{Lane: "general", Position: 5, Ticket: fairness.Ticket{2}},
		&fairness.Call{Time: 100, UpTo: []fairness.Position{6}},
		&fairness.Assign{Lane: "general", Position: 6, Ticket: fairness.Ticket{3}},
		&fairness.Assign{Lane: "general", Position: 9, Ticket: fairness.Ticket{4}},
		&fairness.Call{Time: 200, UpTo: []fairness.Position{8}},
	} {
		r.entry(e)
	}
	s := r.Story()
	if l := s.Lanes["general"]; l.Places != 4 || l.Called != 3 || s.Times.sum(called) != 3 {
		t.Errorf("of %d tickets with a place %d are called, in the chart %d", l.Places, l.Called, s.Times.sum(called))
	}
}

// The page of a large room is not much longer than that of a small one.
func TestLargeRoom(t *testing.T) {
	keys := newKeys(t)
	files := roomtest.Files{}
	if err := roomtest.Generate(keys, files, roomtest.Size{Visitors: 30_000, Windows: 12}); err != nil {
		t.Fatal(err)
	}
	a := audited(t, files, verifier.Trust{VKey: keys.VKey})
	s := a.Story
	if s.Arrivals != 30_000 || len(s.Windows) != 12 || s.Entries != a.Report.Entries || s.Times.sum(admitted) != 30_000 || s.Times.sum(arrived) != 30_000 {
		t.Errorf("%d arrivals, %d windows, %d entries, %d admitted", s.Arrivals, len(s.Windows), s.Entries, s.Times.sum(admitted))
	}
	if n := len(s.Points); n > maxPoints || n < maxPoints/4 {
		t.Errorf("%d points", n)
	}
	for _, p := range s.Points {
		w := s.Windows[(p.Arrival-1)*12/30_000]
		if p.Place <= w.Before || p.Place > w.Before+w.Arrivals {
			t.Errorf("arrival %d has place %d outside of %+v", p.Arrival, p.Place, w)
		}
	}
	if page := written(t, a); len(page) > 200_000 {
		t.Errorf("%d bytes", len(page))
	}
}

// The longest texts of a hostile log still make a page of bounded size, and none of them becomes markup.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("it writes one page: there is nothing for the race detector")
	}
	a := broken(t)
	long := strings.Repeat(`<script>alert("1")</script>'&`, 1<<15)
	a.Report.Origin, a.Checkpoint, a.Source, a.Command = long, []byte(long), "https://"+origin, "x"
	for i := range a.Report.Checks {
		a.Report.Checks[i].Detail = "entry 3 " + long
	}
	s := a.Story
	s.Policy, s.Windows = nil, nil
	a.Findings = nil
	for _, id := range []findings.ID{findings.Gate, findings.FailOpen, findings.Between, findings.LateDraw, findings.Amendments} {
		f := findings.Finding{ID: id, Title: string(id), Text: long[:600], Count: 5_000}
		for i := range uint64(5_000) {
			f.Items = append(f.Items, findings.Item{Entry: i, Time: fairness.Never - 1, Text: strings.Repeat("windows of <b>", 36)})
		}
		a.Findings = append(a.Findings, f)
	}
	when := &Milestone{1<<63 - 1, fairness.Never - 1}
	for range maxWindows {
		s.Windows = append(s.Windows, Window{Window: fairness.Window{Index: 1<<63 - 1, From: 1, To: 2}, Arrivals: 1<<63 - 1, Freeze: when, Draw: when, Round: 1<<63 - 1})
	}
	page := written(t, a)
	t.Logf("%d bytes", len(page))
	if len(page) > MaxSize || strings.Contains(page, "<script") {
		t.Errorf("%d bytes", len(page))
	}
	for _, text := range []string{"49,400 more windows", "4,200 more, which", "4,960 more, which"} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is not there", text)
		}
	}
}

// Bundles that are malformed, late or read twice do not confuse the listener.
func TestRecorder(t *testing.T) {
	keys := newKeys(t)
	files := roomtest.Files{}
	if err := roomtest.Generate(keys, files, roomtest.Size{Visitors: 400, Windows: 2}); err != nil {
		t.Fatal(err)
	}
	head, err := verifier.Unverified(files[roomtest.CheckpointPath])
	if err != nil {
		t.Fatal(err)
	}
	var bundles []audit.Tile
	for tile := range audit.Tiles(head.Size) {
		if tile.Level < 0 {
			bundles = append(bundles, tile)
		}
	}
	r := Record(files)
	for _, i := range []int{2, 1, 1, 0, 0, 3, 4, 2} {
		if _, err := r.Tile(t.Context(), bundles[i]); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Story(); s.Entries != head.Size || s.Arrivals != 400 || len(r.waiting) > 0 {
		t.Errorf("%d entries of %d, %d waiting", s.Entries, head.Size, len(r.waiting))
	}
	files = files.Clone()
	files[bundles[1].Path()] = files[bundles[1].Path()][:100]
	r = Record(files)
	for i := len(bundles) - 1; i >= 0; i-- {
		if _, err := r.Tile(t.Context(), bundles[i]); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.Story(); s.Entries < 256 || s.Entries > 260 || len(r.waiting) > 0 {
		t.Errorf("%d entries, %d waiting", s.Entries, len(r.waiting))
	}
}

// TestRestored: a ticket that got its place back does not count as skipped.
func TestRestored(t *testing.T) {
	keys := newKeys(t)
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r := roomtest.Open(keys, keys.Policy())
	tickets := r.Join(at(1), 5)
	r.Skip(at(2), tickets[0], fairness.RevokedBot)
	r.Skip(at(2), tickets[1], fairness.RevokedBot)
	r.Skip(at(3), tickets[2], fairness.Revoked)
	r.Skip(at(4), tickets[3], fairness.Left)
	for _, i := range []int{0, 2} {
		r.Append(&fairness.Restore{Time: at(5), Ticket: tickets[i]})
	}
	r.Skip(at(6), tickets[2], fairness.RevokedFraud)
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	a := audited(t, publish(t, keys, r.Entries()), verifier.Trust{VKey: keys.VKey})
	want := map[fairness.Reason]uint64{fairness.RevokedBot: 1, fairness.Revoked: 0, fairness.RevokedFraud: 1, fairness.Left: 1}
	if diff := cmp.Diff(want, a.Story.Skips); diff != "" {
		t.Errorf("skips (-want +got):\n%s", diff)
	}
	if got := a.Story.Times.sum(skipped); !a.Report.OK || got != 3 || a.Story.Last != at(6) {
		t.Errorf("%d skipped until %d, %+v", got, a.Story.Last, a.Report)
	}
	html := written(t, a)
	for _, part := range []string{"3 tickets skipped", `revoked-fraud: the organizer claims fraud</th><td class="n">1</td>`, `revoked: the organizer took the place away</th><td class="n">0</td>`,
		`restored: the place was taken away as revoked, and given back</th><td class="n">1</td>`,
		`restored: the place was taken away as revoked-bot, and given back</th><td class="n">1</td>`} {
		if !strings.Contains(html, part) {
			t.Errorf("the report does not say %q", part)
		}
	}
	story := Record(nil) // of entries that no room has: a ticket that is not revoked, restored
	story.entry(&fairness.Restore{Time: at(1), Ticket: tickets[4]})
	if got := story.Story(); got.Times.sum(skipped) != 0 || len(got.Skips) != 0 {
		t.Errorf("%+v", got)
	}
}

// Totals over time do not depend on how often bins were merged.
func TestTimes(t *testing.T) {
	var times Times
	for i := range 100_000 {
		times.add(fairness.Time(i*i), arrived, 1)
	}
	if times.sum(arrived) != 100_000 || len(times.bins) > maxBins || times.end() <= 99_999*99_999 || times.width > 100_000*100_000/maxBins*3 {
		t.Errorf("%d in %d bins of %d", times.sum(arrived), len(times.bins), times.width)
	}
	times.add(-5, arrived, 7)
	times.add(fairness.Never, arrived, 1)
	if times.sum(arrived) != 100_008 || len(times.bins) > maxBins {
		t.Errorf("%d in %d bins", times.sum(arrived), len(times.bins))
	}
}

// Entries that a check names are linked to their bundles, if the log has them.
func TestLinks(t *testing.T) {
	a := broken(t)
	a.Report.Checks[0].Detail = `entry 5 "draw 1": entry 3 used the same seed, and entry 999 is not there`
	a.Report.Entries = 300
	for source, want := range map[string]string{
		"https://example.com/r/sale/":           `<a href="https://example.com/r/sale/tile/entries/000">bundle with entry 5</a> <a href="https://example.com/r/sale/tile/entries/000">bundle with entry 3</a></span>`,
		"https://example.com/r/sale/checkpoint": `<a href="https://example.com/r/sale/tile/entries/000">bundle with entry 5</a>`,
		"./sale":                                `<a href="https://queue.example.com/r/sale/tile/entries/000">bundle with entry 5</a>`,
	} {
		a.Source = source
		if page := written(t, a); !strings.Contains(page, want) {
			t.Errorf("%s: %s is not there", source, want)
		}
	}
	for _, origin := range []string{"javascript:alert(1)", "localhost", "a.example/?x=1", `a.example/"onclick`} {
		a.Source, a.Report.Origin = "./sale", origin
		if page := written(t, a); strings.Contains(page, "<a href") {
			t.Errorf("%s: there is a link", origin)
		}
	}
}

// Statistics are shown if there are any.
func TestStatistics(t *testing.T) {
	a := witnessed(t)
	if page := written(t, a); strings.Contains(page, "Statistics</h2>") {
		t.Error("there are statistics of nothing")
	}
	a.Statistics = &stats.Result{
		Verdict: stats.Unusual, Level: stats.Level,
		Tests: []stats.Test{
			{Title: "Early and late", Made: true, Finding: "Early ones stand <further> to the front.", Adjusted: 0.0012, Unusual: true},
			{Title: "Own tickets", Finding: "No list was given."},
		},
		Grid:      &stats.Grid{Side: 2, Counts: [][]uint64{{3, 1}, {1, 3}}, Expected: [][]float64{{2, 2}, {2, 2}}},
		Power:     []stats.Power{{Cheat: "all friends cheat", Probability: 0.876}},
		CannotSee: []string{"Anything else."},
	}
	page := written(t, a)
	for _, text := range []string{
		`<strong class="fail">Unusual.</strong>`, "&lt;further&gt;", "0.12 %", "not made", "But the places are distributed in an unusual way", "With a probability of 88 %, if all friends cheat.", "Anything else.",
		`<rect class="bar" x="0" y="0" width="1" height="1" fill-opacity="0.75"/>`, "between 50 % and 150 %",
	} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is not there", text)
		}
	}
}

func TestSpan(t *testing.T) {
	for m, want := range map[fairness.Millis]string{
		0: "0 s", 200: "200 ms", 1500: "1.5 s", 60_000: "1 min", 90_000: "1 min 30 s",
		3_600_000: "1 h", 5_400_000: "1 h 30 min", 3_601_001: "1 h 0 min 1.001 s", 1 << 62: "4,611,686,018,427,387,904 ms",
	} {
		if got := span(m); got != want {
			t.Errorf("%d: %q, want %q", m, got, want)
		}
	}
}
