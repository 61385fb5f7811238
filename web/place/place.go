// Package place describes a visitor's place, slot and lots for the pages.
package place

import (
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/page"
)

// Slots returns what visitors without a ticket see of the slots; nil: the room has none, or the first window is
// over. The counts are those of the lane that visitors can join.
func Slots(s *room.Snapshot, policy *fairness.Policy, now time.Time) *page.Slots {
	from, to := s.First()
	if s.Slots == 0 || !now.Before(to) {
		return nil
	}
	return &page.Slots{From: from, To: to, Length: s.Slots, Own: -1, AreLots: len(policy.Lots) > 0,
		Lots: s.SlotLots()[s.Lane(s.OpenLane()).Name]}
}

// AddLots adds the slot and the lots of a ticket.
func AddLots(v *page.View, r *room.Room, st *fairness.Standing, s *room.Snapshot) {
	policy := r.Policy()
	if v.Slots = nil; s.Slots > 0 && st.Window.Index == 0 {
		v.Slots = &page.Slots{From: time.UnixMilli(int64(st.Window.From)), To: time.UnixMilli(int64(st.Window.To)),
			Length: s.Slots, Own: st.Slot}
	}
	if len(policy.Lots) > 0 {
		v.Ticket.Lots, _ = r.Lots(st.Ticket)
	}
}

// reasons maps the reasons for revoking tickets to those of the pages.
var reasons = map[fairness.Reason]page.Reason{
	fairness.TooLarge: page.ReasonLarge, fairness.RevokedBot: page.ReasonBot,
	fairness.RevokedDuplicate: page.ReasonDuplicate,
	fairness.RevokedFraud:     page.ReasonFraud, fairness.RevokedRequest: page.ReasonRequest,
}

// Ticket returns the data of the visitor's own place.
func Ticket(st *fairness.Standing, s *room.Snapshot, now time.Time) *page.Ticket {
	t := &page.Ticket{
		ID: st.Ticket.String(), Lane: string(st.Lane), Seats: st.Seats, Joined: time.UnixMilli(int64(st.Joined)),
		Window: windowView(st, s), Called: s.Lane(st.Lane).Counts.Called, Position: uint64(st.Position),
		AheadMin: st.AheadMin, AheadMax: st.AheadMax, Left: time.Duration(st.Left) * time.Millisecond,
	}
	if s.HasGaps() {
		lane := s.Lane(st.Lane)
		t.Passed, t.Drawn, t.AheadMin, t.AheadMax = lane.Passed, lane.Counts.Drawn, st.TicketsMin, st.TicketsMax
	}
	t.Share, t.Calls = share(s, st.Lane)
	if st.Status != fairness.StatusCalled || !st.Extended {
		t.Extend = s.Extend
	}
	if st.Status == fairness.StatusDrawn {
		t.Called = t.Position - 1 - st.AheadMin // the snapshot may be slightly older
	}
	t.CanReturn = st.Reason.IsRevoked() && !st.Restored
	if st.Reason.IsRevoked() || st.Reason == fairness.TooLarge {
		t.Reason = reasons[st.Reason]
	}
	if st.Settled != 0 {
		t.Settled = time.UnixMilli(int64(st.Settled))
	}
	if span, ok := s.Expected(*st, now); ok {
		t.Expected = &page.Span{Earliest: span.Earliest, Latest: span.Latest}
		t.Grows = s.Grows(*st, now)
	}
	return t
}

// share returns a lane's share of the calls while visitors wait in all lanes, in lowest terms; 0: there is one lane.
func share(s *room.Snapshot, lane fairness.Lane) (calls, of uint64) {
	if len(s.Lanes) == 1 {
		return 0, 0
	}
	for _, l := range s.Lanes {
		of += uint64(l.Weight)
	}
	calls = uint64(s.Lane(lane).Weight)
	a, b := calls, of
	for b > 0 {
		a, b = b, a%b
	}
	return calls / a, of / a
}

// windowView returns the data of a ticket's window.
func windowView(st *fairness.Standing, s *room.Snapshot) page.Window {
	to := time.UnixMilli(int64(st.Window.To))
	w := page.Window{
		Index: uint64(st.Window.Index), From: time.UnixMilli(int64(st.Window.From)), To: to, Draws: s.Draws(st.Window),
	}
	if st.Status == fairness.StatusWaiting && !s.HasGaps() {
		w.Arrivals = uint32(st.AheadMax - st.AheadMin + 1) //nolint:gosec // at most fairness.MaxArrivals
	}
	for _, sum := range s.Windows {
		if sum.Index == st.Window.Index {
			w.Arrivals = max(w.Arrivals, sum.Arrivals)
		}
	}
	return w
}
