package webhook

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
)

// partSize is the maximum number of tickets, windows, changes or times per event.
const partSize = 500

// state is the state kept with a cursor.
type state struct {
	Opens  int64                           `json:"opens,omitempty"` // milliseconds; 0: not known yet
	Opened bool                            `json:"opened,omitempty"`
	Gaps   bool                            `json:"gaps,omitempty"` // the room has slots or lots: places may be nobody's
	Called fairness.Position               `json:"called,omitempty"`
	People map[fairness.WindowIndex]uint32 `json:"people,omitempty"` // visitors in windows that are frozen but not drawn
	Late   *fairness.WindowIndex           `json:"late,omitempty"`   // window for which room.beacon_late was sent
	Forks  map[string]time.Time            `json:"forks,omitempty"`  // by witness: when room.fork_seen was sent
	Ended  bool                            `json:"ended,omitempty"`
}

// gathering collects entries into events, one of each kind as far as parts allow.
type gathering struct {
	*state
	where  where
	parser fairness.Parser

	windows      []drawnWindow
	call         *called
	callTime     fairness.Time
	admitted     []admittedTicket
	revoked      []revokedTicket
	changes      []change
	times        []failOpenTime
	moments      map[EventKind]moment // the latest moment of each kind
	claimsFrozen bool                 // the latest pause also stops claims
}

// take adds the next entry. An entry that cannot be parsed is an error and has no effect.
func (g *gathering) take(entry pglog.Entry) error {
	parsed, err := g.parser.Parse([]byte(entry.Text))
	if err != nil {
		return err
	}
	switch e := parsed.(type) {
	case *fairness.Room:
		g.Opens, g.Gaps = int64(e.Opens), e.HasGaps()
	case *fairness.Freeze:
		if g.Gaps { // it counts lots
			break
		}
		if g.People == nil {
			g.People = map[fairness.WindowIndex]uint32{}
		}
		g.People[e.Window] = uint32(e.Total()) //nolint:gosec // at most fairness.MaxArrivals
	case *fairness.Draw:
		g.draw(entry.Index, e)
	case *fairness.Call:
		g.calls(entry.Index, e)
	case *fairness.Admit:
		g.admitted = append(g.admitted, admittedTicket{entry.Index, timeOf(e.Time), e.Ticket.String(), e.Pass.String()})
	case *fairness.Skip:
		if e.Reason.IsRevoked() {
			g.revoked = append(g.revoked, revokedTicket{entry.Index, timeOf(e.Time), e.Ticket.String()})
		}
	case *fairness.Amend:
		g.amend(entry.Index, e)
	case *fairness.Tell:
		if e.Subject == fairness.TellUnguarded {
			g.times = append(g.times,
				failOpenTime{entry.Index, timeOf(e.Time), timeOf(e.From), timeOf(e.Until), e.Count})
		}
	case *fairness.End:
		g.Ended = true
		g.note(RoomEnded, entry.Index, e.Time)
	}
	return nil
}

func (g *gathering) note(k EventKind, index uint64, at fairness.Time) {
	if g.moments == nil {
		g.moments = map[EventKind]moment{}
	}
	g.moments[k] = moment{g.where, index, timeOf(at)}
}

func (g *gathering) draw(index uint64, e *fairness.Draw) {
	w := drawnWindow{Entry: index, At: timeOf(e.Time), Window: e.Window, Cosignatures: len(e.Cosignatures),
		Seed: hex.EncodeToString(e.Seed[:])}
	if n, ok := g.People[e.Window]; ok {
		w.People = &n
		delete(g.People, e.Window)
	}
	if g.Late != nil && e.Window >= *g.Late {
		g.Late = nil
	}
	g.windows = append(g.windows, w)
}

func (g *gathering) calls(index uint64, e *fairness.Call) {
	upTo := e.Places()
	next := &called{where: g.where, Entry: index, UpTo: upTo}
	if !g.Gaps {
		people := uint64(upTo - min(g.Called, upTo))
		if g.call != nil {
			people += *g.call.People
		}
		next.People = &people
	}
	g.call, g.callTime, g.Called = next, e.Time, upTo
}

func (g *gathering) amend(index uint64, e *fairness.Amend) {
	c := change{Entry: index, At: timeOf(e.Time), Change: e.Change}
	switch e.Change {
	case fairness.ChangePause:
		g.note(RoomPaused, index, e.Time)
		g.claimsFrozen = e.Claims
		return
	case fairness.ChangeResume:
		g.note(RoomResumed, index, e.Time)
		return
	case fairness.ChangeOpen:
		g.note(GateOpened, index, e.Time)
		return
	case fairness.ChangeShut:
		g.note(GateShut, index, e.Time)
		return
	case fairness.ChangeOutflow:
		c.Outflow = &outflow{e.Outflow.PerMinute, e.Outflow.MaxActive}
	case fairness.ChangeSeats:
		c.Seats = e.Seats
	case fairness.ChangeMessage:
		c.Message = hex.EncodeToString(e.Message[:])
	case fairness.ChangeWindows:
		if e.Closes != fairness.Never {
			closes := timeOf(e.Closes)
			c.Closes = &closes
		}
	}
	g.changes = append(g.changes, c)
}

// events returns the collected events.
func (g *gathering) events() (list []event) {
	for part := range slices.Chunk(g.windows, partSize) {
		list = append(list, event{WindowDrawn, part[len(part)-1].At, drawn{g.where, part}})
	}
	if g.call != nil {
		list = append(list, event{RoomCalled, timeOf(g.callTime), *g.call})
	}
	for part := range slices.Chunk(g.admitted, partSize) {
		list = append(list, event{Admitted, part[len(part)-1].At, admitted{g.where, len(part), part}})
	}
	for part := range slices.Chunk(g.revoked, partSize) {
		list = append(list, event{Revoked, part[len(part)-1].At, revoked{g.where, len(part), part}})
	}
	for part := range slices.Chunk(g.changes, partSize) {
		list = append(list, event{RoomAmended, part[len(part)-1].At, amended{g.where, part}})
	}
	for part := range slices.Chunk(g.times, partSize) {
		list = append(list, event{FailOpen, part[len(part)-1].At, failOpen{g.where, part}})
	}
	for _, k := range []EventKind{RoomPaused, RoomResumed, GateOpened, GateShut, RoomEnded} {
		m, ok := g.moments[k]
		switch {
		case ok && k == RoomPaused:
			list = append(list, event{k, m.At, paused{m, g.claimsFrozen}})
		case ok:
			list = append(list, event{k, m.At, m})
		}
	}
	return list
}

func timeOf(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }
