package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/live/pglive"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// Summary describes the course of an ended room, derived from its transcript.
type Summary struct {
	Slug     string    `json:"slug"`
	Created  time.Time `json:"created"`
	Opens    time.Time `json:"opens"`
	Starts   time.Time `json:"starts"`
	Ended    time.Time `json:"ended"`
	Duration float64   `json:"duration_s"` // time from the opening to the end
	Entries  uint64    `json:"entries"`

	Arrivals uint64 `json:"arrivals"`
	Drawn    uint64 `json:"drawn"` // arrivals whose window was drawn
	Called   uint64 `json:"called"`
	Admitted uint64 `json:"admitted"`
	NoShows  uint64 `json:"no_shows"`
	CutOff   uint64 `json:"cut_off"` // called visitors who could still claim when the room ended
	Left     uint64 `json:"left"`
	Revoked  uint64 `json:"revoked"`
	Draws    uint64 `json:"draws"`
	Changes  uint64 `json:"changes"` // number of amendments

	Switches []Switch   `json:"switches"`  // switches of the gate, the first 1,000
	FailOpen []FailOpen `json:"fail_open"` // fail-open intervals, the first 1,000

	NoShowRate *float64 `json:"no_show_rate"` // see [NoShowRate]
	Peak       Peak     `json:"peak"`

	ToCall      Percentiles     `json:"wait_to_call"`      // counted from the arrival
	ToAdmission Percentiles     `json:"wait_to_admission"` // counted from the arrival
	Windows     []WindowSummary `json:"windows"`           // the first 5,000 with arrivals
}

// Switch is one switch of the gate.
type Switch struct {
	At    time.Time `json:"at"`
	To    room.Gate `json:"to"`
	Entry uint64    `json:"entry"` // index in the transcript
}

// maxSwitches is the maximum length of the lists of switches and fail-open intervals.
const maxSwitches = 1_000

// Peak is the first second with the most arrivals.
type Peak struct {
	At       time.Time `json:"at"` // start of the second
	Arrivals uint64    `json:"arrivals"`
}

// Percentiles are waits in seconds (nearest rank). They are null if no visitor waited.
type Percentiles struct {
	People int      `json:"people"`
	P50    *float64 `json:"p50_s"`
	P90    *float64 `json:"p90_s"`
	P99    *float64 `json:"p99_s"`
	Max    *float64 `json:"most_s"`
}

// WindowSummary describes the visitors of one window.
type WindowSummary struct {
	Index       fairness.WindowIndex `json:"index"`
	From        time.Time            `json:"from"`
	To          time.Time            `json:"to"`
	Arrivals    uint64               `json:"arrivals"`
	Admitted    uint64               `json:"admitted"`
	NoShows     uint64               `json:"no_shows"`
	Left        uint64               `json:"left"`
	Revoked     uint64               `json:"revoked"`
	ToCall      Percentiles          `json:"wait_to_call"`
	ToAdmission Percentiles          `json:"wait_to_admission"`
}

// summaryWait is how long Summary waits for the computation.
const summaryWait = 5 * time.Second

// Summary returns the summary of an ended room. It is computed once, in one pass over the
// transcript, when the room ends or at the first request. It returns [ErrNotEnded], [ErrComputing],
// or an error of [room.Rooms.Get] or the database.
func (l *Live) Summary(ctx context.Context, slug string) (Summary, error) {
	record, err := l.record(ctx, slug)
	if err != nil {
		return Summary{}, err
	}
	if s, err := l.storedSummary(ctx, record.ID); !errors.Is(err, pglive.ErrNotFound) {
		return s, err
	}
	r, err := l.Rooms.Get(ctx, slug)
	if err != nil {
		return Summary{}, err
	}
	if !r.Snapshot().Ended {
		return Summary{}, ErrNotEnded
	}
	wait := time.NewTimer(summaryWait)
	defer wait.Stop()
	select {
	case made := <-l.group.DoChan(slug, func() (any, error) { return l.makeSummary(context.WithoutCancel(ctx), r) }):
		s, _ := made.Val.(Summary)
		return s, made.Err
	case <-wait.C:
		return Summary{}, ErrComputing
	case <-ctx.Done():
		return Summary{}, ctx.Err()
	}
}

// digestEnded computes the summary of a room that has just ended, unless it is stored already.
func (l *Live) digestEnded(ctx context.Context, r *room.Room) {
	_, err := l.storedSummary(ctx, r.ID)
	if errors.Is(err, pglive.ErrNotFound) {
		_, err, _ = l.group.Do(r.Slug, func() (any, error) { return l.makeSummary(ctx, r) })
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot compute summary", "room", r.Slug, "err", err)
	}
}

func (l *Live) storedSummary(ctx context.Context, id uuid.UUID) (s Summary, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	text, err := l.Store.Summary(ctx, id)
	if err != nil {
		return s, err
	}
	s.Switches, s.FailOpen = []Switch{}, []FailOpen{} // an empty list, not null, if the document lacks them
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("read summary of %s: %w", id, err)
	}
	return s, nil
}

// digestTimeout limits the computation of a summary.
const digestTimeout = 10 * time.Minute

// makeSummary computes a summary and stores it. Only one runs at a time, because it takes a whole
// core and the memory of [digest].
func (l *Live) makeSummary(ctx context.Context, r *room.Room) (Summary, error) {
	select {
	case l.digests <- struct{}{}:
	case <-ctx.Done():
		return Summary{}, ctx.Err()
	}
	defer func() { <-l.digests }()
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	d := newDigest()
	if err := r.Transcript.ReadEntries(ctx, d.add); err != nil {
		return Summary{}, err
	}
	s := d.finish(r.Slug)
	text, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("write summary: %w", err)
	}
	return s, l.Store.AddSummary(ctx, r.ID, text)
}

// maxWindowsListed is the maximum length of the list of windows.
const maxWindowsListed = 5_000

// digest computes a summary from the entries of a transcript in order. It uses about 120 bytes for
// each visitor who is not yet both called and settled, and 8 for each of the others.
type digest struct {
	Summary
	schedule fairness.State // policy and amendments only, for the schedule of windows
	people   map[fairness.Ticket]person
	lanes    []digestLane // in the order of the policy
	windows  []windowDigest
	now      Peak
}

// person is a visitor who is not yet both called and settled, or whose ticket is revoked and may be restored.
type person struct {
	joined  fairness.Time
	window  uint32 // index into digest.windows
	called  bool   // the visitor's call is noted
	settled uint64 // number of the entry that admits or skips; 0: not yet
	revoked bool
}

// digestLane is the line of one lane.
type digestLane struct {
	name  fairness.Lane
	line  []fairness.Assign // drawn places in order, from the first whose call is not noted
	drawn fairness.Position // the latest of all
	calls []digestCall      // calls whose places have not all been assigned yet
}

// digestCall is a call entry; number counts entries from 1.
type digestCall struct {
	number uint64
	upTo   fairness.Position
	time   fairness.Time
}

type windowDigest struct {
	WindowSummary
	toCall, toAdmission []uint32 // waits in milliseconds, at most 49 days
}

func newDigest() *digest {
	return &digest{people: map[fairness.Ticket]person{},
		Summary: Summary{Switches: []Switch{}, FailOpen: []FailOpen{}}}
}

// add processes the next entry of a valid transcript.
func (d *digest) add(e fairness.Entry) error {
	d.Entries++
	switch e := e.(type) {
	case *fairness.Room:
		d.Created, d.Opens, d.Starts = moment(e.Created), moment(e.Opens), moment(e.Starts)
		for _, l := range e.Lanes {
			d.lanes = append(d.lanes, digestLane{name: l.Name})
		}
		return d.schedule.Apply(e, nil)
	case *fairness.Amend:
		d.Changes++
		d.amend(e)
		return d.schedule.Apply(e, nil)
	case *fairness.Tell:
		if e.Subject == fairness.TellUnguarded && len(d.FailOpen) < maxSwitches {
			d.FailOpen = append(d.FailOpen, FailOpen{moment(e.Time), moment(e.From), moment(e.Until), e.Count})
		}
	case *fairness.Arrive:
		d.arrive(e)
	case *fairness.Draw:
		d.Draws++
	case *fairness.Assign:
		d.Drawn++
		i := slices.IndexFunc(d.lanes, func(l digestLane) bool { return l.name == e.Lane })
		d.lanes[i].line, d.lanes[i].drawn = append(d.lanes[i].line, *e), e.Position
		d.noteCalls(&d.lanes[i])
	case *fairness.Call:
		for i := range d.lanes {
			d.lanes[i].calls = append(d.lanes[i].calls, digestCall{d.Entries, e.UpTo[i], e.Time})
			d.noteCalls(&d.lanes[i])
		}
	case *fairness.Admit:
		d.settle(e.Ticket, false, func(w *windowDigest, p person) {
			d.Admitted++
			w.Admitted++
			w.toAdmission = append(w.toAdmission, wait(p.joined, e.Time))
		})
	case *fairness.Skip:
		d.settle(e.Ticket, e.Reason.IsRevoked(), func(w *windowDigest, _ person) { d.skip(&w.WindowSummary, e.Reason) })
	case *fairness.Restore:
		d.restore(e.Ticket)
	case *fairness.End:
		d.Ended = moment(e.Time)
	}
	return nil
}

// amend adds the switches of amendments to the summary.
func (d *digest) amend(e *fairness.Amend) {
	to := room.GateShut
	switch e.Change {
	case fairness.ChangeOpen:
		to = room.GateOpen
		fallthrough
	case fairness.ChangeShut:
		if len(d.Switches) < maxSwitches {
			d.Switches = append(d.Switches, Switch{moment(e.Time), to, d.Entries - 1})
		}
	default:
	}
}

func moment(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }

// wait returns the time between two entries in milliseconds.
func wait(from, to fairness.Time) uint32 { return uint32(min(max(to-from, 0), 1<<32-1)) } //nolint:gosec // bounded

func (d *digest) arrive(e *fairness.Arrive) {
	d.Arrivals++
	if n := len(d.windows); n == 0 || d.windows[n-1].Index != e.Window {
		w, _ := d.schedule.Schedule().At(e.Time)
		d.windows = append(d.windows, windowDigest{WindowSummary: WindowSummary{Index: e.Window, From: moment(w.From),
			To: moment(w.To)}})
	}
	number := len(d.windows) - 1
	d.windows[number].Arrivals++
	d.people[e.Ticket] = person{joined: e.Time, window: uint32(number)} //nolint:gosec // fewer than arrivals
	at := moment(e.Time).Truncate(time.Second)
	if !at.Equal(d.now.At) {
		d.now = Peak{At: at}
	}
	if d.now.Arrivals++; d.now.Arrivals > d.Peak.Arrivals {
		d.Peak = d.now
	}
}

// noteCalls adds the waits of called visitors whose places are known. A call requires the draw, but
// places may be assigned after the call. The last place of a call is that of a visitor.
func (d *digest) noteCalls(l *digestLane) {
	for len(l.calls) > 0 {
		c := l.calls[0]
		for len(l.line) > 0 && l.line[0].Position <= c.upTo {
			d.Called++
			d.noteCall(l.line[0].Ticket, c)
			l.line = l.line[1:]
		}
		if l.drawn < c.upTo {
			return
		}
		l.calls = l.calls[1:]
	}
}

// noteCall adds the wait of a called visitor, unless they were skipped before the call.
func (d *digest) noteCall(t fairness.Ticket, c digestCall) {
	p, ok := d.people[t]
	if !ok {
		return
	}
	if p.settled == 0 || p.settled > c.number {
		w := &d.windows[p.window]
		w.toCall = append(w.toCall, wait(p.joined, c.time))
	}
	p.called = true
	d.keep(t, p)
}

// restore takes a revocation back.
func (d *digest) restore(t fairness.Ticket) {
	if p, ok := d.people[t]; ok && p.revoked {
		d.Revoked--
		d.windows[p.window].Revoked--
		p.settled, p.revoked = 0, false
		d.people[t] = p
	}
}

// settle records a visitor's admission or skip.
func (d *digest) settle(t fairness.Ticket, revoked bool, note func(*windowDigest, person)) {
	if p, ok := d.people[t]; ok && p.settled == 0 {
		note(&d.windows[p.window], p)
		p.settled, p.revoked = d.Entries, revoked
		d.keep(t, p)
	}
}

// keep stores a person, or drops one who is both called and settled, and not revoked.
func (d *digest) keep(t fairness.Ticket, p person) {
	if p.called && p.settled != 0 && !p.revoked {
		delete(d.people, t)
		return
	}
	d.people[t] = p
}

func (d *digest) skip(w *WindowSummary, why fairness.Reason) {
	switch {
	case why == fairness.NoShow:
		d.NoShows++
		w.NoShows++
	case why == fairness.Left:
		d.Left++
		w.Left++
	case why.IsRevoked():
		d.Revoked++
		w.Revoked++
	}
}

// finish computes the summary.
func (d *digest) finish(slug string) Summary {
	s := d.Summary
	s.Slug, s.Duration = slug, max(s.Ended.Sub(s.Opens), 0).Seconds()
	s.NoShowRate = share(s.NoShows, s.Admitted)
	for _, p := range d.people {
		if p.called && p.settled == 0 {
			s.CutOff++
		}
	}
	s.Windows = []WindowSummary{}
	var toCall, toAdmission []uint32
	for i := range d.windows {
		w := &d.windows[i]
		toCall, toAdmission = append(toCall, w.toCall...), append(toAdmission, w.toAdmission...)
		if i < maxWindowsListed {
			w.ToCall, w.ToAdmission = percentiles(w.toCall), percentiles(w.toAdmission)
			s.Windows = append(s.Windows, w.WindowSummary)
		}
	}
	s.ToCall, s.ToAdmission = percentiles(toCall), percentiles(toAdmission)
	return s
}

// percentiles computes percentiles. It sorts waits.
func percentiles(waits []uint32) Percentiles {
	p := Percentiles{People: len(waits)}
	if len(waits) == 0 {
		return p
	}
	slices.Sort(waits)
	of := func(percent int) *float64 { // nearest rank
		seconds := float64(waits[(percent*len(waits)+99)/100-1]) / 1000
		return &seconds
	}
	p.P50, p.P90, p.P99, p.Max = of(50), of(90), of(99), of(100)
	return p
}
