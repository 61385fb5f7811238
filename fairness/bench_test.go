package fairness

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

const million = 1_000_000

// benchTickets are tickets as random as real ones.
func benchTickets(n int) []Ticket {
	r := rand.New(rand.NewPCG(1, 2))
	tickets := make([]Ticket, n)
	for i := range tickets {
		tickets[i] = numbered(r.Uint64())
		binary.BigEndian.PutUint32(tickets[i][:], r.Uint32())
	}
	return tickets
}

// benchRoom returns the transcript of a room of n visitors who join in one window and are all called and
// admitted: 3n entries and a few more.
func benchRoom(tb testing.TB, n int) (texts [][]byte, oracle *fakeOracle) {
	p := testPolicy()
	p.Outflow = Outflow{PerMinute: MaxRate}
	p.Claim = MaxClaim
	r := &State{}
	oracle = &fakeOracle{}
	put := func(e Entry) {
		if err := r.Apply(e, oracle); err != nil {
			tb.Fatal(err)
		}
		texts = append(texts, AppendEntry(nil, e))
	}
	put(&Room{Policy: p})
	for i, t := range benchTickets(n) {
		e, _ := r.NextArrive(base+Time(i/100), t, General)
		put(&e)
	}
	now := base + minute
	f, alpha, _ := r.NextFreeze(now, oracle.root)
	f.Proof = fakeProof(p.VRFKey, alpha)
	put(f)
	d, _ := r.NextDraw(now, nil)
	put(d)
	for e, ok := r.NextAssign(); ok; e, ok = r.NextAssign() {
		put(&e)
	}
	for called := Position(0); called < r.lanes.all[0].places; {
		now += second
		upTo, _ := r.callLimit(now, 1<<62)
		put(&Call{now, []Position{upTo}})
		for ; called < upTo; called++ {
			t := r.at(&r.lanes.all[0], called+1).ticket
			put(&Admit{now, t, NewPassID(p.Origin, t)})
		}
	}
	return texts, oracle
}

func benchmarkParse(b *testing.B, e Entry) {
	text := AppendEntry(nil, e)
	var p Parser
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := p.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseArrive(b *testing.B) {
	benchmarkParse(b, &Arrive{base, 3, 123_456, benchTickets(1)[0], General, 0, nil})
}

func BenchmarkParseAssign(b *testing.B) {
	benchmarkParse(b, &Assign{3, General, 123_456, benchTickets(1)[0]})
}

func BenchmarkParseAdmit(b *testing.B) {
	t := benchTickets(1)[0]
	benchmarkParse(b, &Admit{base, t, NewPassID("queue.example.com/r/show", t)})
}

// BenchmarkReplay parses and applies the transcript of a room of a million visitors, as auditors do, and
// servers at the start. Roots and proofs cost nothing here.
func BenchmarkReplay(b *testing.B) {
	texts, oracle := benchRoom(b, million)
	b.ReportAllocs()
	for b.Loop() {
		s, p := &State{}, &Parser{}
		for _, text := range texts {
			e, err := p.Parse(text)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Apply(e, oracle); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts)), "ns/entry")
}

// benchmarkApply measures each entry of one kind in a room of a million visitors, after applying all entries
// before the first of that kind.
func benchmarkApply(b *testing.B, kind Kind) {
	texts, oracle := benchRoom(b, million)
	var ahead, measured []Entry
	for _, text := range texts {
		e, err := ParseEntry(text)
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case KindOf(e) == kind:
			measured = append(measured, e)
		case len(measured) == 0:
			ahead = append(ahead, e)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s := &State{}
		for _, e := range ahead {
			if err := s.Apply(e, oracle); err != nil {
				b.Fatal(err)
			}
		}
		b.StartTimer()
		for _, e := range measured {
			if err := s.Apply(e, oracle); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(measured)), "ns/entry")
}

func BenchmarkApplyArrive(b *testing.B) { benchmarkApply(b, KindArrive) }
func BenchmarkApplyDraw(b *testing.B)   { benchmarkApply(b, KindDraw) }
func BenchmarkApplyAssign(b *testing.B) { benchmarkApply(b, KindAssign) }

func BenchmarkShuffle(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Shuffle(Seed{1}, General, million)
	}
}

func BenchmarkStanding(b *testing.B) {
	texts, oracle := benchRoom(b, million)
	s, p := &State{}, &Parser{}
	for _, text := range texts {
		e, err := p.Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Apply(e, oracle); err != nil {
			b.Fatal(err)
		}
	}
	tickets := benchTickets(million)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, ok := s.Standing(tickets[i%million], s.size, s.now); !ok {
			b.Fatal("ticket is not known")
		}
		i += 7919
	}
}
