// Package findings lists events that a room's rules allow but a reader should know about: changes
// made while visitors waited, late draws and freezes, tickets that left between a round and its
// draw, times in which the site admitted visitors without waiting.
//
//	verifier.Audit ─► Trust.OnEntry ─► Finder.Add ─► Finder.Findings
//
// A finding does not fail an audit. It shows what the operator could have done, not that it did.
// The package has no clock, and its memory is limited to the cases that a page can show, however
// large the room is.
package findings

import (
	"slices"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/numeral"
)

// maxItems is the maximum number of cases listed per finding.
const maxItems = 800

// A later freeze or draw is a finding: servers restart, and rounds take a second or two to arrive.
const (
	freezeSlack = fairness.Millis(2000)
	drawSlack   = fairness.Millis(10_000)
)

// Finding is one kind of event that a reader should know about.
type Finding struct {
	ID    ID     `json:"id"`
	Title string `json:"title"` // headline
	Text  string `json:"text"`  // number and meaning of the cases
	Count uint64 `json:"count"` // number of cases
	// Longest is the length of the longest case in milliseconds, and Total the sum of all; 0 if cases
	// have no length.
	Longest fairness.Millis `json:"longest_ms,omitempty"`
	Total   fairness.Millis `json:"total_ms,omitempty"`
	Items   []Item          `json:"items"` // first cases, at most maxItems
}

// Item is one case of a finding.
type Item struct {
	Entry uint64        `json:"entry"` // index of the entry
	Time  fairness.Time `json:"time"`  // time of the entry, milliseconds since the Unix epoch
	// kind of an amendment: outflow, pause, freeze-claims, resume, message, windows, open, shut; subject of a
	// statement: stock, price, refused, unguarded, auto
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// ID names a finding.
type ID string

// The findings, in the order in which they are listed.
const (
	Gate       ID = "gate"        // the site admitted visitors who were not in line
	FailOpen   ID = "fail-open"   // its connectors could not reach the room, and admitted visitors
	Contrary   ID = "contrary"    // statements of the operator contradict the record
	Between    ID = "between"     // decisions between a round and its draw
	LateDraw   ID = "late-draw"   // a draw was late after its round
	LateFreeze ID = "late-freeze" // a freeze was late after its window
	Gap        ID = "gap"         // nothing was written for longer than the grace, while visitors were called
	Undrawn    ID = "undrawn"     // the room ended while windows were closed but not drawn
	Single     ID = "single"      // a window had one arrival
	ShortClaim ID = "short-claim" // called visitors had less than a minute
	PassedOver ID = "passed-over" // parties did not fit, while the operator had changed the number of seats
	Restored   ID = "restored"    // revoked tickets got their place back
	Extended   ID = "extended"    // called tickets were given more time
	Slots      ID = "slots"       // what the slots of the first window held
	Lots       ID = "lots"        // methods gave tickets more lots
	Told       ID = "told"        // statements of the operator
	Amendments ID = "amendments"  // the operator changed the published rules
)

var order = []ID{Gate, FailOpen, Contrary, Between, LateDraw, LateFreeze, Gap, Undrawn, Single, ShortClaim,
	PassedOver, Restored, Extended, Slots, Lots, Told, Amendments}

// Finder collects findings during an audit. The zero value is ready to use.
type Finder struct {
	found   map[ID]*Finding
	windows map[fairness.WindowIndex]*window // windows with arrivals that are not drawn
	newest  *window                          // latest of windows; nil: none
	index   fairness.WindowIndex             // index of newest
	last    fairness.Time
	amended amended
	between between
	told    told
	slots   slots
	opened  fairness.Time // time of the room entry

	restored restored
	passed   passedOver
	gaps     gaps
	ended    bool
}

// window is a window with arrivals that is not drawn.
type window struct {
	to     fairness.Time
	people uint64
	frozen fairness.Time // time of the freeze; 0: not yet
	known  fairness.Time // time from which the operator can know the order: its round or, without a beacon, the freeze
}

// Add adds the next entry, with the state after it. Use it as a [verifier.Trust]'s OnEntry.
func (f *Finder) Add(s *fairness.State, e fairness.Entry) {
	f.noteGap(s, e)
	f.last = s.Now()
	f.noteBetween(s, e)
	f.told.follow(f, s, e)
	f.passed.follow(f, s, e)
	switch e := e.(type) {
	case *fairness.Room:
		f.room(s)
		f.slots.begin(s)
		f.opened = e.Created
	case *fairness.Arrive:
		f.arrive(s, e)
		f.slots.arrive(s.Policy(), e)
	case *fairness.Merit:
		f.slots.show(e.Credential.Method)
	case *fairness.Freeze:
		f.freeze(s, e)
		f.freezeSlots(s, e)
	case *fairness.Draw:
		f.draw(s, e)
	case *fairness.Amend:
		f.amend(s, e)
	case *fairness.Skip:
		f.restored.revoke(e)
	case *fairness.Restore:
		f.restore(s, e)
	case *fairness.Extend:
		more := " was given " + span(s.Policy().Extend) + " more to go in."
		f.add(Extended, s, "", "A ticket of window "+windowOf(s, e.Ticket)+more, 0)
	case *fairness.Tell:
		f.tell(s, e)
	case *fairness.End:
		f.end(s, e)
	}
	f.restored.waiting = s.Waiting()
}

// add adds a case; length is 0 for cases without a length.
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

// Findings returns the findings so far, in a fixed order. It may be called only once.
func (f *Finder) Findings() []Finding {
	f.amended.close(f)
	f.slots.close(f)
	list := []Finding{}
	for _, id := range order {
		if found := f.found[id]; found != nil {
			found.Title, found.Text = titles[id], f.words(found)
			list = append(list, *found)
		}
	}
	return list
}

// Of returns the finding with that id; nil if there is none.
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
		f.add(ShortClaim, s, "", "Called visitors have "+span(p.Claim)+" to go in.", 0)
	}
}

func (f *Finder) arrive(s *fairness.State, e *fairness.Arrive) {
	if f.newest == nil || f.index != e.Window { // arrivals are recorded window by window
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
	f.between.frozen = append(f.between.frozen, e.Window)
	f.between.expect(f.windows)
	if late := fairness.Millis(e.Time - w.to); late > freezeSlack {
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
	f.between.expect(f.windows)
	if late := fairness.Millis(e.Time - w.known); late > drawSlack {
		f.add(LateDraw, s, "", "Window "+number(e.Window)+", "+numeral.Count(w.people, "person",
			"people")+": drawn "+span(late)+" after its outcome could be known.", late)
	}
}

func (f *Finder) end(s *fairness.State, e *fairness.End) {
	f.ended = true
	for _, index := range slices.Sorted(keys(f.windows)) {
		w := f.windows[index]
		switch {
		case w.frozen == 0:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person",
				"people")+": not closed and not drawn.", 0)
		case e.Time >= w.known:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person",
				"people")+": closed but not drawn, although its outcome could be known for "+span(fairness.Millis(e.Time-w.known))+".", 0)
		default:
			f.add(Undrawn, s, "", "Window "+number(index)+", "+numeral.Count(w.people, "person",
				"people")+": closed but not drawn; its round had not appeared.", 0)
		}
	}
}
