// Package findings lists what a room's rules allow and a reader should know:
// changes made while people waited, draws and freezes that came late, tickets
// that left between a round and its draw, time in which the site let people in
// past the line.
//
//	verifier.Audit ─► Trust.Heard ─► Finder.Hear ─► Finder.Findings
//
// A finding is no fault: an audit passes with all of them. It says what the
// operator could have done, not that it did. The package has no clock, and holds
// as much as a page can show, however large the room is.
package findings

import (
	"slices"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// maxItems is how many cases one finding lists.
const maxItems = 800

// slack is how late a freeze or a draw may be before it is a finding: servers
// are stopped and restarted, and rounds take a second or two to arrive.
const slack = fairness.Millis(10_000)

// Finding is one thing that a reader should know.
type Finding struct {
	ID    ID     `json:"id"`
	Title string `json:"title"` // what it is
	Text  string `json:"text"`  // how much of it there was, and what it means
	Count uint64 `json:"count"` // cases
	// Longest is the length of the longest case in milliseconds, and Total that
	// of all together; 0 where cases have no length.
	Longest fairness.Millis `json:"longest_ms,omitempty"`
	Total   fairness.Millis `json:"total_ms,omitempty"`
	Items   []Item          `json:"items"` // the first cases
}

// Item is one case of a finding.
type Item struct {
	Entry uint64        `json:"entry"` // index
	Time  fairness.Time `json:"time"`  // of the entry, milliseconds since the Unix epoch
	Kind  string        `json:"kind"`  // of an amendment: outflow, pause, hold, resume, message, windows, open, shut, unguarded
	Text  string        `json:"text"`
}

// ID names a finding.
type ID string

// The findings, in the order in which they are listed.
const (
	Gate        ID = "gate"         // the site let people in who were not in line
	Unguarded   ID = "unguarded"    // its connectors could not reach the room, and let people in
	Gone        ID = "gone"         // tickets left or were revoked between a round and its draw
	LateDraw    ID = "late-draw"    // a draw came late after its round
	LateFreeze  ID = "late-freeze"  // a freeze came late after its window
	EarlyCosign ID = "early-cosign" // a cosignature is dated before its freeze
	Undrawn     ID = "undrawn"      // the room ended while windows were closed and not drawn
	Single      ID = "single"       // a window had one arrival
	ShortClaim  ID = "short-claim"  // called people had less than a minute
	Amendments  ID = "amendments"   // what the operator changed
)

var order = []ID{Gate, Unguarded, Gone, LateDraw, LateFreeze, EarlyCosign, Undrawn, Single, ShortClaim, Amendments}

// Finder listens to an audit. The zero value is ready.
type Finder struct {
	found   map[ID]*Finding
	windows map[fairness.WindowIndex]*window // with arrivals, and not drawn
	newest  *window                          // of them, nil for none
	index   fairness.WindowIndex             // its index
	last    fairness.Time
	amended amended
	revoked uint64 // of the tickets of Gone
	ended   bool
}

// window is a window with arrivals that is not drawn.
type window struct {
	to     fairness.Time
	people uint64
	frozen fairness.Time // 0 for not yet
	known  fairness.Time // when the operator can know the order: the round appears, or without a beacon the freeze
}

// Hear takes the next entry, and the room's state with it: it is a
// [verifier.Trust]'s Heard.
func (f *Finder) Hear(s *fairness.State, e fairness.Entry) {
	f.last = s.Now()
	switch e := e.(type) {
	case *fairness.Room:
		f.room(s)
	case *fairness.Arrive:
		f.arrive(s, e)
	case *fairness.Freeze:
		f.freeze(s, e)
	case *fairness.Draw:
		f.draw(s, e)
	case *fairness.Skip:
		f.skip(s, e)
	case *fairness.Amend:
		f.amend(s, e)
	case *fairness.End:
		f.end(s, e)
	}
}

// add adds a case; the length is 0 where it has none.
func (f *Finder) add(id ID, s *fairness.State, kind, text string, length fairness.Millis) {
	if f.found == nil {
		f.found = map[ID]*Finding{}
	}
	found := f.found[id]
	if found == nil {
		found = &Finding{ID: id}
		f.found[id] = found
	}
	found.Count++
	found.Longest, found.Total = max(found.Longest, length), found.Total+length
	if len(found.Items) < maxItems {
		found.Items = append(found.Items, Item{s.Size() - 1, f.last, kind, text})
	}
}

// Findings returns what was found so far, in a fixed order. It may be called
// once only.
func (f *Finder) Findings() []Finding {
	f.amended.close(f)
	list := []Finding{}
	for _, id := range order {
		if found := f.found[id]; found != nil {
			found.Title, found.Text = titles[id], f.words(found)
			list = append(list, *found)
		}
	}
	return list
}

// Of returns the finding of that id, nil for none.
func Of(list []Finding, id ID) *Finding {
	i := slices.IndexFunc(list, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		return nil
	}
	return &list[i]
}

func (f *Finder) room(s *fairness.State) {
	p := s.Policy()
	f.amended.outflow, f.amended.closes = p.Outflow, p.Closes
	f.windows = map[fairness.WindowIndex]*window{}
	if p.Claim < 60_000 {
		f.add(ShortClaim, s, "", "Called people have "+span(p.Claim)+" to go in.", 0)
	}
}

func (f *Finder) arrive(s *fairness.State, e *fairness.Arrive) {
	if f.newest == nil || f.index != e.Window { // arrivals come window by window
		of, _ := s.Schedule().At(e.Time)
		f.newest, f.index = &window{to: of.To}, e.Window
		f.windows[e.Window] = f.newest
	}
	f.newest.people++
}

func (f *Finder) freeze(s *fairness.State, e *fairness.Freeze) {
	w := f.windows[e.Window]
	if w == nil {
		return
	}
	w.frozen, w.known = e.Time, e.Time
	if b := s.Policy().Beacon; b != nil {
		w.known = fairness.Time(b.Emitted(e.Round))
	}
	if late := fairness.Millis(e.Time - w.to); late > slack {
		f.add(LateFreeze, s, "", "Window "+number(e.Window)+" was closed "+span(late)+" after its end.", late)
	}
	if w.people == 1 {
		f.add(Single, s, "", "Window "+number(e.Window)+" had one arrival.", 0)
	}
}

func (f *Finder) draw(s *fairness.State, e *fairness.Draw) {
	w := f.windows[e.Window]
	if w == nil {
		return
	}
	delete(f.windows, e.Window)
	if late := fairness.Millis(e.Time - w.known); late > slack {
		f.add(LateDraw, s, "", "Window "+number(e.Window)+", "+numeral.Count(w.people, "person", "people")+": drawn "+span(late)+" after its outcome could be known.", late)
	}
	for _, c := range e.Cosignatures {
		signed := fairness.Time(1000 * min(seconds(c)+1, 1<<53/1000)) // a time in seconds is cut off
		if early := fairness.Millis(w.frozen - signed); early > 0 {
			f.add(EarlyCosign, s, "", "Window "+number(e.Window)+": a witness signed at least "+span(early)+" before the time that its freeze states.", early)
		}
	}
}

func (f *Finder) skip(s *fairness.State, e *fairness.Skip) {
	if e.Reason == fairness.NoShow {
		return
	}
	index, _ := s.WindowOf(e.Ticket)
	w := f.windows[index]
	if w == nil || w.frozen == 0 || e.Time < w.known {
		return
	}
	what := "left"
	if e.Reason.IsRevoked() {
		f.revoked++
		what = "was taken away (" + string(e.Reason) + ")"
	}
	f.add(Gone, s, "", "A ticket of window "+number(index)+" "+what+", "+span(fairness.Millis(e.Time-w.known))+" after the outcome of its draw could be known.", 0)
}

func (f *Finder) end(s *fairness.State, e *fairness.End) {
	f.ended = true
	for _, index := range slices.Sorted(keys(f.windows)) {
		w := f.windows[index]
		switch {
		case w.frozen == 0:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person", "people")+": not closed and not drawn.", 0)
		case e.Time >= w.known:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person", "people")+": closed and not drawn, though its outcome could be known for "+span(fairness.Millis(e.Time-w.known))+".", 0)
		default:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person", "people")+": closed and not drawn; its round had not appeared.", 0)
		}
	}
}
