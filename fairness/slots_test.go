package fairness

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/vrf"
)

// numberedSeed returns a seed, different for every n.
func numberedSeed(n int) Seed { return sha256.Sum256(fmt.Append(nil, "draw ", n)) }

// TestMeanPlace: over 10,000 draws, the mean place of a lot is that of RULES.md, section 9.
func TestMeanPlace(t *testing.T) {
	for _, lots := range [][]uint32{{4, 4, 4}, {10, 5, 10, 10}, {1, 12, 3}, {0, 7}, {6, 1}} {
		const draws = 10_000
		sums := make([]float64, len(lots))
		for n := range draws {
			for k, lot := range Deal(numberedSeed(n), General, lots) {
				if lot.Seq < lots[lot.Slot] {
					sums[lot.Slot] += float64(k + 1)
				}
			}
		}
		filled := Fill(lots)
		for i, n := range lots {
			s, want := float64(filled[i]), (float64(filled[i])+1)/2
			for j, other := range filled {
				switch o := float64(other); {
				case j == i:
				case o >= s:
					want += s / 2
				default:
					want += o - o*o/(2*s)
				}
			}
			// A place is spread over at most all of them, so that ten standard errors are wide, and the seeds are fixed.
			got := sums[i] / draws / float64(max(n, 1))
			if n > 0 && math.Abs(got-want) > 0.01*want+0.1 {
				t.Errorf("lots %v: mean place %.2f in slot %d, want %.2f", lots, got, i, want)
			}
		}
	}
}

// TestDealIsWhole: each lot has one place, empty ones included, and the first round has the first lot of each slot.
func TestDealIsWhole(t *testing.T) {
	for n, lots := range [][]uint32{{5}, {0}, {3, 3}, {1, 0, 8}, {0, 0, 0}, {0, 0, 1}} {
		line, filled := Deal(numberedSeed(n), General, lots), Fill(lots)
		has := map[Lot]bool{}
		for _, lot := range line {
			if has[lot] || lot.Seq >= filled[lot.Slot] {
				t.Errorf("lots %v: %v is there twice, or not in its slot", lots, lot)
			}
			has[lot] = true
		}
		total := uint32(0)
		for _, n := range filled {
			total += n
		}
		if len(line) != int(total) {
			t.Errorf("lots %v: %d places, want %d", lots, len(line), total)
		}
	}
	if got := Fill([]uint32{1, 0, 8}); !slices.Equal(got, []uint32{2, 2, 8}) { // half of the mean is 1.5
		t.Errorf("filled to %v", got)
	}
}

// TestLoneBot: a bot alone in a slot is not in the first round more often than its filled slot allows.
func TestLoneBot(t *testing.T) {
	lots, first, best := []uint32{1, 99, 100}, 0, 0
	const draws = 5000
	for n := range draws {
		line := Deal(numberedSeed(n), General, lots)
		if place := slices.Index(line, Lot{0, 0}); place < len(lots) {
			first++
		}
		if slices.Index(line, Lot{1, 0}) < len(lots) {
			best++
		}
	}
	// Its slot has 34 lots, and another's 99.
	if rate := float64(first) / draws; math.Abs(rate-1.0/34) > 0.01 {
		t.Errorf("the bot is in the first round in %.3f of the draws", rate)
	}
	if rate := float64(best) / draws; math.Abs(rate-1.0/99) > 0.01 {
		t.Errorf("a visitor is in the first round in %.3f of the draws", rate)
	}
}

// TestTwoLots: one with two lots is ahead of one with one lot in two of three draws.
func TestTwoLots(t *testing.T) {
	ahead := 0
	const draws = 5000
	for n := range draws {
		order := Shuffle(numberedSeed(n), General, 3) // lots 0 and 1 are one ticket's
		if order[0] != 2 {
			ahead++
		}
	}
	if rate := float64(ahead) / draws; math.Abs(rate-2.0/3) > 0.03 {
		t.Errorf("ahead in %.3f of the draws", rate)
	}
}

func TestSlotPolicy(t *testing.T) {
	task, club, phone := issuertest.Work("task", 6), issuertest.Signed("club", 3), issuertest.Blind("phone", 0)
	cases := map[string]struct {
		change func(*Policy)
		ok     bool
	}{
		"no slots":          {func(p *Policy) {}, true},
		"two slots":         {func(p *Policy) { p.Slots = 30_000 }, true},
		"a last short slot": {func(p *Policy) { p.Slots = 59_999 }, true},
		"64 slots":          {func(p *Policy) { p.Slots = 938 }, true},
		"65 slots":          {func(p *Policy) { p.Slots = 937 }, false},
		"one slot":          {func(p *Policy) { p.Slots = 60_000 }, false},
		"a negative slot":   {func(p *Policy) { p.Slots = -1 }, false},
		"a lot":             {func(p *Policy) { p.Lots = []string{"club"} }, true},
		"two lots":          {func(p *Policy) { p.Lots = []string{"club", "phone"} }, true},
		"three lots": {func(p *Policy) {
			p.Methods = append(p.Methods, issuertest.Signed("fans", 0).Method)
			p.Lots = []string{"club", "phone", "fans"}
		}, true},
		"in another order": {func(p *Policy) { p.Lots = []string{"phone", "club"} }, false},
		"twice":            {func(p *Policy) { p.Lots = []string{"club", "club"} }, false},
		"unknown":          {func(p *Policy) { p.Lots = []string{"fans"} }, false},
		"work":             {func(p *Policy) { p.Lots = []string{"task"} }, false},
		"four": {func(p *Policy) {
			for i := range 4 {
				m := issuertest.Signed(fmt.Sprint("m", i), 0).Method
				p.Methods, p.Lots = append(p.Methods, m), append(p.Lots, m.Name)
			}
		}, false},
	}
	for name, c := range cases {
		p := testPolicy()
		p.Beacon = &Beacon{newChain(t).Chain(), 5000}
		p.Methods = []credential.Method{task.Method, club.Method, phone.Method}
		c.change(&p)
		if problems := p.Problems(); (len(problems) == 0) != c.ok {
			t.Errorf("%s: %v", name, problems)
		}
		if c.ok {
			newScript(t, p) // its text has one spelling
		}
	}
}

// TestSlots plays a room with slots and two lanes: seqs count by slot and lane, and places that nobody has are passed.
func TestSlots(t *testing.T) {
	p := testPolicy()
	p.Lanes, p.Slots = lanesOf(2), 20_000
	r := newScript(t, p)
	first, second := r.lanes.all[0].name, r.lanes.all[1].name
	early := &Amend{Time: base - minute, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{base, 30_000}}}
	r.refuse(RuleAmend, early) // no notice allows to change the slots
	early.Windows[0] = WindowRule{base + minute, 30_000}
	r.must(early)
	plain := newScript(t, testPolicy())
	plain.must(&Amend{Time: base - minute, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{base, 30_000}}})
	var of []Ticket
	join := func(at Time, lane Lane, seq uint32) {
		t.Helper()
		ticket := numbered(uint64(len(of)))
		of = append(of, ticket)
		r.refuse(RuleArrival, &Arrive{Time: at, Seq: seq + 1, Ticket: ticket, Lane: lane})
		r.must(&Arrive{Time: at, Seq: seq, Ticket: ticket, Lane: lane})
	}
	join(base, first, 0)
	join(base+19_999, first, 1)
	join(base+19_999, second, 0)
	join(base+20_000, first, 0)
	for seq := range uint32(8) {
		join(base+59_999, first, seq)
	}
	r.refuse(RuleAmend, &Amend{Time: base + 59_999, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{base + 59_999, 1000}}})
	f, _, _ := r.NextFreeze(base+minute, r.oracle.root)
	if !slices.Equal(f.Lots, []uint32{2, 1, 1, 0, 8, 0}) {
		t.Fatalf("frozen with %v", f.Lots)
	}
	r.must(r.freeze(base + minute))
	d, _ := r.NextDraw(base+minute, nil)
	mark, twin := r.Mark(), r.twin.Mark()
	r.must(d)
	r.Undo(mark)
	r.twin.Undo(twin)
	r.must(d)
	line := Deal(d.Seed, first, []uint32{2, 1, 8})
	n := r.LaneCounts()
	if len(line) != 12 || n[0].Drawn != 11 || n[1].Drawn != 1 || r.lanes.all[0].places != 12 {
		t.Fatalf("%d places, and counts %+v", len(line), n)
	}
	for k, lot := range line { // the tickets of the first lane, by slot
		tickets := [][]Ticket{{of[0], of[1]}, {of[3]}, of[4:]}[lot.Slot]
		switch number, ok := r.lanes.all[0].holder(&r.arrivals, Position(k+1)); {
		case ok != (int(lot.Seq) < len(tickets)):
			t.Errorf("place %d has a holder: %t", k+1, ok)
		case ok && r.arrivals.At(number).ticket != tickets[lot.Seq]:
			t.Errorf("place %d is another ticket's", k+1)
		}
	}
	stated := 0
	for e, ok := r.NextAssign(); ok; e, ok = r.NextAssign() {
		r.must(&e)
		stated++
	}
	if stated != 12 || r.Counts().Assigned != 12 {
		t.Errorf("%d places are stated", stated)
	}
	if st, _ := r.Standing(of[3], r.size, base+minute); st.Seq != 0 || st.Position == 0 {
		t.Errorf("standing %+v", st)
	}
	r.callNext(base+2*minute, 12)
	if c := r.Counts(); c.Waiting != 12 || c.Ready != 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestLots plays a room in which a credential gives a lot: the place of a ticket is that of the first of its lots.
func TestLots(t *testing.T) {
	club, p := issuertest.Signed("club", 0), testPolicy()
	p.Methods, p.Lots = []credential.Method{club.Method}, []string{"club"}
	r := newScript(t, p)
	show := func(n int) credential.Credential {
		return club.Show(r.Subject(General, numbered(uint64(n))), n)
	}
	ticket := func(n int) Ticket { return numbered(uint64(n)) }
	r.must(r.arrive(base, General, ticket(0)))
	r.refuse(RuleArrival, &Arrive{Time: base, Seq: 2, Ticket: ticket(1), Lane: General})
	r.must(r.arrive(base, General, ticket(1), show(1))) // seqs 1 and 2
	r.refuse(RuleArrival, &Arrive{Time: base, Seq: 2, Ticket: ticket(2), Lane: General})
	r.must(&Arrive{Time: base, Seq: 3, Ticket: ticket(2), Lane: General})
	r.refuse(RuleMerit, &Merit{base, ticket(0), 3, show(0)})
	r.must(&Merit{base, ticket(0), 4, show(0)})
	r.refuse(RuleFreeze, &Freeze{Time: base + minute, Lots: []uint32{3}, Size: r.size, Root: r.oracle.root})
	r.must(&Skip{base, ticket(2), Left}) // its lot stays
	r.must(r.freeze(base + minute))
	d, _ := r.NextDraw(base+minute, nil)
	r.must(d)
	order := Shuffle(d.Seed, General, 5)
	holders := []Ticket{ticket(0), ticket(1), ticket(1), ticket(2), ticket(0)}
	for n := range 3 {
		want := slices.IndexFunc(order, func(seq uint32) bool { return holders[seq] == ticket(n) }) + 1
		if st, _ := r.Standing(ticket(n), r.size, base+minute); st.Position != Position(want) {
			t.Errorf("ticket %d has place %d, want %d", n, st.Position, want)
		}
	}
	for e, ok := r.NextAssign(); ok; e, ok = r.NextAssign() {
		r.must(&e)
	}
	if c := r.Counts(); c.Drawn != 3 || c.Assigned != 3 || c.Ready != 2 {
		t.Errorf("counts %+v", c)
	}
	e, n := r.NextCall(base+10*minute, math.MaxUint64)
	if n != 2 {
		t.Fatalf("%d are called", n)
	}
	r.must(e)
	late, _ := r.NoShows(Scan{}, base+30*minute, math.MaxInt)
	if len(late) != 2 {
		t.Errorf("%d no-shows", len(late))
	}
}

// makeSlotsRoom plays a room with two lanes, three slots, and a method that gives a lot.
func makeSlotsRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	club, p := issuertest.Signed("club", 0), vectorPolicy(t, key)
	p.Lanes = []LaneRule{{General, 2, nil}, {"members", 1, nil}}
	p.Methods, p.Lots, p.Slots = []credential.Method{club.Method}, []string{"club"}, 25_000
	for _, broken := range []func(*Policy){
		func(p *Policy) { p.Slots = 60_000 }, func(p *Policy) { p.Slots = 900 }, func(p *Policy) { p.Lots = []string{"vip"} },
		func(p *Policy) { p.Lots = []string{"club", "club"} },
	} {
		bad := p
		broken(&bad)
		s.refuse(RulePolicy, &Room{bad})
	}
	s.must(&Room{p})
	ticket := func(n int) Ticket { return NewTicket(p.Origin, vectorSecret(n)) }
	show := func(lane Lane, n int) credential.Credential { return club.Show(s.Subject(lane, ticket(n)), n) }
	s.must(s.arrive(p.Opens, General, ticket(1)))
	s.must(s.arrive(p.Opens, "members", ticket(2), show("members", 2)))
	s.must(s.arrive(p.Opens+24_999, General, ticket(3), show(General, 3)))
	s.refuse(RuleArrival, &Arrive{p.Opens + 25_000, 0, 3, ticket(4), General, 0, nil}) // of the first slot
	for n := 4; n < 10; n++ {
		s.must(s.arrive(p.Opens+25_000, General, ticket(n)))
	}
	s.refuse(RuleMerit, &Merit{p.Opens + 26_000, ticket(1), 6, show(General, 1)}) // of the second slot
	s.must(s.merit(p.Opens+26_000, ticket(1), show(General, 1)))
	s.must(s.arrive(p.Opens+50_000, General, ticket(10)))
	s.must(s.merit(p.Opens+59_999, ticket(5), show(General, 5)))
	s.refuse(RuleAmend, &Amend{Time: p.Opens + 59_999, Change: ChangeWindows, Closes: p.Closes,
		Windows: []WindowRule{{p.Opens + 59_999, 1000}}})
	s.slotsDraw(p.Starts)
	s.must(s.arrive(p.Starts, General, ticket(11), show(General, 11)))
	s.must(s.arrive(p.Starts+1, General, ticket(12)))
	for at := p.Starts + 1; s.Counts().Ready > 0; at += 2000 {
		if e, _ := s.NextCall(at, 1); e != nil {
			s.must(e)
		}
	}
	s.slotsDraw(p.Starts + 60_000)
	s.must(&End{p.Starts + 62_000})
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	return s.out
}

// slotsDraw freezes and draws a window.
func (s *story) slotsDraw(at Time) {
	s.t.Helper()
	f, alpha, _ := s.NextFreeze(at, s.oracle.Root())
	proof, beta := s.key.Prove(alpha)
	f.Proof = [ProofSize]byte(proof)
	for i := range f.Lots {
		bad := *f
		bad.Lots = slices.Clone(f.Lots)
		bad.Lots[i]++
		s.refuse(RuleFreeze, &bad)
	}
	short := *f
	short.Lots = f.Lots[:len(f.Lots)-1]
	s.refuse(RuleFreeze, &short)
	s.must(f)
	d, _ := s.NextDraw(at, nil)
	s.draw(d, alpha, beta)
	for e, ok := s.NextAssign(); ok; e, ok = s.NextAssign() {
		next := e
		next.Position++
		s.refuse(RuleAssign, &next)
		s.assign(&e)
	}
}
