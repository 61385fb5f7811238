package fairness

// This file computes the entries that the rules allow or require next. The server builds its
// entries with it; an auditor does not need it, and the verifier compiles without it. Callers never
// pass a time before [State.Now], and nothing may follow the end of a room.

// NextArrive returns the arrive entry of a new ticket that joins now; false if no window is open,
// or if the room is full or has ended.
func (s *State) NextArrive(now Time, t Ticket) (Arrive, bool) {
	if s.size == 0 || s.ended || s.arrivals.count == MaxArrivals {
		return Arrive{}, false
	}
	w, ok := s.schedule.At(now)
	return Arrive{Time: now, Window: w.Index, Seq: s.NextSeq(w), Ticket: t, Lane: General}, ok
}

// NextFreeze returns the freeze entry that is due, without its proof, and the VRF input to prove;
// false if no freeze is due.
func (s *State) NextFreeze(now Time, root [HashSize]byte) (*Freeze, []byte, bool) {
	if due, ok := s.FreezeDue(); !ok || now < due || s.ended {
		return nil, nil, false
	}
	w := &s.windows[s.frozen]
	e := &Freeze{Time: now, Window: w.Index, Lots: w.count, Size: s.size, Root: root}
	if b := s.policy.Beacon; b != nil {
		e.Round = b.Round(now)
	}
	return e, Alpha(s.roomHash, e), true
}

// Pending describes a window that is frozen but not drawn.
type Pending struct {
	Window WindowIndex
	Frozen Time   // time of the freeze
	Size   uint64 // size of the checkpoint for witnesses to cosign
	Round  uint64 // beacon round to wait for; 0 without a beacon
	Due    Time   // when the round appears; 0 without a beacon
}

// Pending returns the windows that are frozen but not drawn, in drawing order; nil once the room
// has ended.
func (s *State) Pending() []Pending {
	if s.ended || s.drawn == s.frozen {
		return nil
	}
	var list []Pending
	for _, w := range s.windows[s.drawn:s.frozen] {
		p := Pending{Window: w.Index, Frozen: w.frozen, Size: w.size, Round: w.round}
		if b := s.policy.Beacon; b != nil {
			p.Due = Time(b.Emitted(w.round))
		}
		list = append(list, p)
	}
	return list
}

// NextDraw returns the draw of the first pending window with the given beacon signature and
// cosignatures; false if no window is pending or its round has not appeared.
func (s *State) NextDraw(now Time, signature []byte, cosignatures ...Cosignature) (*Draw, bool) {
	pending := s.Pending()
	if len(pending) == 0 || now < pending[0].Due {
		return nil, false
	}
	w := &s.windows[s.drawn]
	seed := NewSeed(w.alpha, w.beta, w.round, signature)
	return &Draw{Time: now, Window: w.Index, Signature: signature, Seed: seed, Cosignatures: cosignatures}, true
}

// CallLimit returns how far the serving pointer may move now if at most capacity visitors may be
// called; false if it may not move.
func (s *State) CallLimit(now Time, capacity uint64) (Position, bool) {
	called := s.called()
	if s.pace.paused || s.ended || now < s.policy.Starts || called == s.places {
		return 0, false
	}
	people := min(uint64(s.pace.at(now).credit/creditPerCall), capacity)
	upTo := called
	for upTo < s.places {
		if !s.outcome(s.at(upTo + 1)).skipped() {
			if people == 0 {
				break
			}
			people--
		}
		upTo++
	}
	return upTo, upTo > called
}

// NoShows appends to dst the tickets that may be skipped as no-shows, starting at position from,
// until dst has limit tickets. It also returns the position to start from next time: the first
// whose ticket may still be claimed or is not called.
func (s *State) NoShows(dst []Ticket, from Position, now Time, limit int) ([]Ticket, Position) {
	p := max(from, 1)
	for ; len(dst) < limit && !s.ended; p++ {
		c, called := s.callOf(p)
		if !called {
			break
		}
		a := s.at(p)
		if a.settled != 0 {
			continue
		}
		if s.claimLeft(c, now) > 0 {
			break
		}
		dst = append(dst, a.ticket)
	}
	return dst, p
}
