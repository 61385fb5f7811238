package fairness

// This file answers what the rules allow, or demand, to be written next. The
// server builds its entries from it; an auditor needs none of it, and the
// verifier compiles without it. A moment asked about is never before
// [State.Now], and nothing may be written in a room that has ended.

// NextArrive returns the arrive entry of a new ticket that joins at a moment;
// false when no window is open then, the room is full or has ended.
func (s *State) NextArrive(now Time, t Ticket) (Arrive, bool) {
	if s.size == 0 || s.ended || s.arrivals.count == MaxArrivals {
		return Arrive{}, false
	}
	w, ok := s.schedule.At(now)
	return Arrive{Time: now, Window: w.Index, Seq: s.NextSeq(w), Ticket: t, Lane: General}, ok
}

// NextFreeze returns the freeze entry that is due, without its proof, and
// the VRF input the proof must be over; false when none is due.
func (s *State) NextFreeze(now Time, root [HashSize]byte) (*Freeze, []byte, bool) {
	if due, ok := s.FreezeDue(); !ok || now < due || s.ended {
		return nil, nil, false
	}
	w := &s.windows[s.frozen]
	e := &Freeze{Time: now, Window: w.Index, Lots: w.count, Size: s.size, Root: root}
	if b := s.policy.Beacon; b != nil {
		e.Round = b.Round(w.To, now)
	}
	return e, Alpha(s.roomHash, e), true
}

// Pending is a window that is frozen and not drawn.
type Pending struct {
	Window WindowIndex
	Size   uint64 // of the checkpoint that witnesses are to cosign
	Round  uint64 // of the beacon that is waited for, 0 for none
	Due    Time   // when that appears; with none, 0
}

// Pending returns the windows that are frozen and not drawn, in the order in
// which they will be; none in a room that has ended.
func (s *State) Pending() []Pending {
	if s.ended || s.drawn == s.frozen {
		return nil
	}
	var list []Pending
	for _, w := range s.windows[s.drawn:s.frozen] {
		p := Pending{Window: w.Index, Size: w.size, Round: w.round}
		if b := s.policy.Beacon; b != nil {
			p.Due = Time(b.Emitted(w.round))
		}
		list = append(list, p)
	}
	return list
}

// NextDraw returns the draw of the first pending window, with the signature of
// its round and what cosignatures there are; false when none is pending, or the
// round has not appeared.
func (s *State) NextDraw(now Time, signature []byte, cosignatures ...Cosignature) (*Draw, bool) {
	pending := s.Pending()
	if len(pending) == 0 || now < pending[0].Due {
		return nil, false
	}
	w := &s.windows[s.drawn]
	seed := NewSeed(w.alpha, w.beta, w.round, signature)
	return &Draw{Time: now, Window: w.Index, Signature: signature, Seed: seed, Cosignatures: cosignatures}, true
}

// CallLimit returns how far the serving pointer may move now if at most
// capacity more people may come; false when it may not move.
func (s *State) CallLimit(now Time, capacity uint64) (Position, bool) {
	called := s.called()
	if s.pace.paused || s.ended || now < s.policy.Starts || called == s.places {
		return 0, false
	}
	people := min(uint64(s.pace.at(now).credit/creditPerCall), capacity)
	upTo := called
	for upTo < s.places {
		if !s.at(upTo + 1).outcome.skipped() {
			if people == 0 {
				break
			}
			people--
		}
		upTo++
	}
	return upTo, upTo > called
}

// NoShows appends to dst the tickets that may be skipped as no-shows, looking
// at positions from a given one on, and returns the position from which to
// look the next time: the first one whose ticket may still be claimed, or is
// not called. It looks no further once dst has most tickets.
func (s *State) NoShows(dst []Ticket, from Position, now Time, most int) ([]Ticket, Position) {
	p := max(from, 1)
	for ; len(dst) < most && !s.ended; p++ {
		c, called := s.callOf(p)
		if !called {
			break
		}
		a := s.at(p)
		if a.settled != 0 {
			continue
		}
		if s.left(c, now) > 0 {
			break
		}
		dst = append(dst, a.ticket)
	}
	return dst, p
}
