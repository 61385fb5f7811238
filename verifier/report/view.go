package report

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
)

// Maximum numbers of rows in the longest tables.
const (
	maxWindowRows = 600
	maxChangeRows = 800
	maxCaseRows   = 40 // rows of other findings
	maxNamed      = 3  // linked entries per check
)

// page is the data of the template.
type page struct {
	*Audit
	moments
	base string // URL of the log; "": unknown

	Headline, Quote string
	LevelName       string
	Failed          int
	Proven          []string
	NotProven       []string
	Key             string
	KeyGiven        bool
	Beacon          *beaconView
	Witnesses       []witnessView
	Numbers         []fact
	Charts          []*chart
	Windows         []windowView
	MoreWindows     string
	OnTop           []findings.Finding // important findings, also in Found
	Found           []foundView
	Lanes           []laneView
	Skips           []fact
	Statistic       *statsView
	Checks          []checkView
	When            string
	SignedText      string
	Room            string
	Until           string
}

type fact struct{ Name, Value string }

// Door returns what a join needed, what was shown, and what issuers count.
func (p *page) Door() []string {
	lines := Door(p.Report)
	for _, i := range p.Issued {
		lines = append(lines, i.Text())
	}
	return lines
}

// Address returns the room's address; "" if it is unknown.
func (p *page) Address() string { return p.base }

// IsRemote reports whether the transcript was read from an address to link to.
func (p *page) IsRemote() bool {
	return p.base != "" && (strings.HasPrefix(p.Source, "http://") || strings.HasPrefix(p.Source, "https://"))
}

// Period returns the time from the opening of the line to its latest entry.
func (p *page) Period() string { return p.lasted(p.moments) }

// PeriodUTC returns the same period in UTC; "" if Period is already in UTC.
func (p *page) PeriodUTC() string {
	if !p.isLocal() {
		return ""
	}
	return p.lasted(moments{})
}

func (p *page) lasted(m moments) string {
	from, to := p.Story.Times.start, p.Story.Last
	if from == 0 || to < from || to >= fairness.Never {
		return ""
	}
	return m.period(from, to)
}

// ZoneName returns the name of the event's time zone; "" for UTC.
func (p *page) ZoneName() string {
	if !p.isLocal() {
		return ""
	}
	return p.Zone.String()
}

// entryView is an entry to look up.
type entryView struct {
	Index   string
	Address string // address of its bundle; "": unknown
}

type windowView struct {
	Index, From, Length, Arrivals string
	Frozen, Drawn                 string // times, or "not yet"
	Freeze, Draw                  *entryView
	Cosigned                      string
}

// foundView is a finding with some of its cases.
type foundView struct {
	Title, Text string
	Rows        []rowView
	More        string
}

type rowView struct {
	When, Words string
	Entry       *entryView
}

type laneView struct{ Name, Arrivals, Places, Called string }

type checkView struct {
	Number         int
	ID, Title      string
	Status, Detail string
	Entries        []*entryView // entries named in the detail
}

type beaconView struct {
	Hash, ID string
	Public   bool // the beacon is quicknet
	Given    bool // the beacon is trusted by the auditor, or public
}

type witnessView struct {
	Name, Key string
	Given     bool
	Draws     string
}

func newPage(a *Audit) *page {
	if a.Story == nil {
		a.Story = &Story{}
	}
	r, s := a.Report, a.Story
	m := moments{a.Zone}
	p := &page{Audit: a, moments: m, base: base(a.Source, r.Origin), When: m.beside(a.Time.Truncate(time.Second)),
		Room: clip(r.Origin, 300)}
	for i, c := range r.Checks {
		if c.Status == verifier.Fail {
			p.Failed++
		}
		p.Checks = append(p.Checks, p.check(i, c))
	}
	p.Headline, p.Quote = p.verdict()
	p.LevelName = levelNames[r.Level]
	for _, w := range levelWords {
		if r.OK && w.level <= r.Level {
			p.Proven = append(p.Proven, w.text)
		}
	}
	for _, text := range r.NotProven {
		p.NotProven = append(p.NotProven, clip(text, 1000))
	}
	p.trust()
	p.tables()
	p.findings()
	p.Statistic = newStatsView(a.Statistics)
	for _, c := range []*chart{arrivalChart(s, m), positionChart(s), admissionChart(s, m)} {
		if c != nil {
			p.Charts = append(p.Charts, c)
		}
	}
	p.SignedText = clip(string(a.Checkpoint), 32_000)
	p.Until = p.moment(s.Last)
	return p
}

// trust lists the parties that the verdict relies on.
func (p *page) trust() {
	p.Key, p.KeyGiven = p.Trust.VKey, p.Trust.VKey != ""
	policy := p.Story.Policy
	if policy == nil {
		return
	}
	if !p.KeyGiven {
		p.Key = policy.LogKey
	}
	if b := policy.Beacon; b != nil {
		hash := b.Hash()
		v := &beaconView{Hash: hex.EncodeToString(hash[:]), ID: b.ID, Public: hash == beacon.Quicknet().Hash()}
		v.Given = v.Public || slices.Contains(p.Trust.Beacons, hash)
		p.Beacon = v
	}
	for _, key := range policy.Witnesses {
		w := witnessView{Name: clip(key, 200), Key: key, Given: slices.Contains(p.Trust.Witnesses, key)}
		if known, err := audit.ParseWitness(key); err == nil {
			w.Name = known.Name()
			w.Draws = numeral.Count(p.Story.Cosigned[known.KeyHash()], "draw", "draws")
		}
		p.Witnesses = append(p.Witnesses, w)
	}
}

// tables fills in the numbers and lists.
func (p *page) tables() {
	r, s := p.Report, p.Story
	p.Numbers = []fact{
		{"entries", numeral.Group(r.Entries)}, {"arrivals", numeral.Group(s.Arrivals)},
		{"windows with arrivals", numeral.Group(uint64(len(s.Windows)) + s.Untold)}, {"draws", numeral.Group(r.Draws)},
		{"places", numeral.Group(r.Assignments)}, {"admissions", numeral.Group(s.Times.sum(admitted))},
		{"skips", numeral.Group(s.Times.sum(skipped))}, {"amendments", numeral.Group(s.Amends)},
	}
	for i := range s.Windows[:min(len(s.Windows), maxWindowRows)] {
		p.Windows = append(p.Windows, p.window(&s.Windows[i]))
	}
	p.MoreWindows = more(uint64(len(s.Windows)-len(p.Windows)) + s.Untold)
	for _, name := range slices.Sorted(maps.Keys(s.Lanes)) {
		l := s.Lanes[name]
		p.Lanes = append(p.Lanes, laneView{string(name), numeral.Group(l.Arrivals), numeral.Group(l.Places),
			numeral.Group(l.Called)})
	}
	p.Skips = []fact{
		{"no-show: called, but not claimed in time", numeral.Group(s.Skips[fairness.NoShow])},
		{"left: the visitor gave the place up", numeral.Group(s.Skips[fairness.Left])},
		{"too-large: a party that wanted more seats than were left", numeral.Group(s.Skips[fairness.TooLarge])},
		{"revoked: the organizer took the place away", numeral.Group(s.Skips[fairness.Revoked])},
	}
	for _, r := range revocations {
		if n := s.Skips[r.reason]; n > 0 {
			p.Skips = append(p.Skips, fact{string(r.reason) + ": " + r.words, numeral.Group(n)})
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(s.Restored)) {
		p.Skips = append(p.Skips, fact{"restored: the place was taken away as " + string(reason) + ", and given back",
			numeral.Group(s.Restored[reason])})
	}
}

// revocations are the organizers' reasons for taking places away.
var revocations = []struct {
	reason fairness.Reason
	words  string
}{
	{fairness.RevokedBot, "the organizer claims that it belonged to a bot"},
	{fairness.RevokedDuplicate, "the organizer claims that the visitor held several"},
	{fairness.RevokedFraud, "the organizer claims fraud"},
	{fairness.RevokedRequest, "the organizer claims that the visitor asked for it"},
}

// findings fills in the findings; times in which visitors entered without waiting come first.
func (p *page) findings() {
	for i := range p.Audit.Findings {
		f := &p.Audit.Findings[i]
		if f.ID == findings.Gate || f.ID == findings.FailOpen {
			p.OnTop = append(p.OnTop, findings.Finding{Title: f.Title, Text: p.text(f.Text)})
		}
		v, most := foundView{Title: f.Title, Text: p.text(f.Text)}, maxCaseRows
		if f.ID == findings.Amendments {
			most = maxChangeRows
		}
		for _, item := range f.Items[:min(len(f.Items), most)] {
			if f.Count == 1 && strings.HasPrefix(f.Text, item.Text) {
				break // the text already says so
			}
			v.Rows = append(v.Rows, rowView{p.moment(item.Time), clip(p.text(item.Text), 600), p.entry(item.Entry)})
		}
		v.More = more(f.Count - uint64(min(len(f.Items), most)))
		p.Found = append(p.Found, v)
	}
}

// more returns the number of rows that a table leaves out; "" for 0.
func more(n uint64) string {
	if n == 0 {
		return ""
	}
	return numeral.Group(n)
}

func (p *page) window(w *Window) windowView {
	v := windowView{Index: numeral.Group(uint64(w.Index)), Arrivals: numeral.Group(w.Arrivals), Frozen: "not yet",
		Drawn: "not yet"}
	if w.To > 0 {
		v.From, v.Length = p.moment(w.From), span(fairness.Millis(w.To-w.From))
	}
	if f := w.Freeze; f != nil {
		v.Frozen, v.Freeze = p.moment(f.Time), p.entry(f.Entry)
		if w.To > 0 && f.Time > w.To {
			v.Frozen = fmt.Sprintf("%s after its end", span(fairness.Millis(f.Time-w.To)))
		} else if w.To > 0 {
			v.Frozen = "at its end"
		}
	}
	if d := w.Draw; d != nil {
		v.Draw = p.entry(d.Entry)
		v.Drawn = p.moment(d.Time)
		if f := w.Freeze; f != nil && d.Time >= f.Time {
			v.Drawn = fmt.Sprintf("%s later", span(fairness.Millis(d.Time-f.Time)))
		}
		if w.Round > 0 {
			v.Drawn += fmt.Sprintf(", round %d", w.Round)
		}
		v.Cosigned = strconv.Itoa(w.Cosignatures)
	}
	return v
}

func (p *page) entry(index uint64) *entryView {
	return &entryView{numeral.Group(index), p.address(index)}
}

var named = regexp.MustCompile(`\bentry (\d{1,19})\b`)

func (p *page) check(i int, c verifier.Check) checkView {
	v := checkView{Number: i + 1, ID: c.ID, Title: c.Title, Status: string(c.Status), Detail: clip(c.Detail, 2000)}
	for _, m := range named.FindAllStringSubmatch(c.Detail, maxNamed) {
		if index, err := strconv.ParseUint(m[1], 10, 63); err == nil && index < p.Report.Entries && p.base != "" {
			v.Entries = append(v.Entries, p.entry(index))
		}
	}
	return v
}

// Witnessed describes how many draws had enough cosignatures: by all witnesses of the policy, and
// by those of them that the auditor knows.
func (p *page) Witnessed() string {
	r := p.Report
	return fmt.Sprintf("The policy requires %d of %d. At least %[1]d of them had signed in time for %[3]d of %[4]s, and at least %d that the auditor knows for %d of these. Of those, %d have cosigned the checkpoint of this report.",
		r.Quorum, len(r.Witnesses), r.Witnessed, numeral.Count(r.Draws, "draw", "draws"), len(r.Witnesses)/2+1,
		r.Vouched, r.Cosigned)
}

var published = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*$`)

// base returns the URL of a log: its source, or else the address in its origin.
func base(source, origin string) string {
	if u, err := url.Parse(source); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return strings.TrimRight(strings.TrimSuffix(source, "/checkpoint"), "/")
	}
	if published.MatchString(origin) && len(origin) <= 255 && strings.Contains(origin, ".") {
		return "https://" + origin
	}
	return ""
}
