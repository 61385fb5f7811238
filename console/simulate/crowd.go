package simulate

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
)

// Spreads of the log-normal delays: of their logarithm, the standard
// deviation. With 0.6 a tenth takes more than twice the median.
const (
	humanSpread = 0.6
	botSpread   = 0.5
)

// kind is what a visitor is.
type kind uint8

const (
	slow kind = iota
	fast
	bot
)

// status is what became of a visitor.
type status uint8

const (
	away     status = iota // has not come yet
	refused                // came when the room was closed
	inLine                 // joined
	summoned               // called
	admitted
	noShow
	left
)

// visitor is one ticket of the line: what it will do, drawn beforehand so that
// the same people come whatever the room's windows are, and what became of it.
type visitor struct {
	arrives  fairness.Time
	called   fairness.Time
	gone     fairness.Time // admitted, or left
	position fairness.Position
	patience fairness.Millis // after which a place that is not called is given up
	claims   fairness.Millis // after the call
	stay     fairness.Millis // after the admission
	kind     kind
	status   status
	buys     bool
	bought   bool
}

// forever is a patience without end, and a claim that never comes.
const forever fairness.Millis = math.MaxInt32

// newCrowd draws everybody who comes, in the order of arrival.
func newCrowd(p *Plan) []visitor {
	d := &dice{rand.New(rand.NewPCG(p.Seed, 1))}
	people := p.Visitors - p.Bots.Count
	crowd := make([]visitor, 0, p.Visitors)
	moments := newMoments(p)
	for n := range people {
		v := d.person(p)
		v.arrives = moments(d, n, people, v.kind)
		if v.patience < forever {
			v.patience += fairness.Millis(max(p.Room.Starts.after()-v.arrives, 0)) // it begins with the calls
		}
		crowd = append(crowd, v)
	}
	for range p.Bots.Count {
		crowd = append(crowd, d.bot(p))
	}
	slices.SortStableFunc(crowd, func(a, b visitor) int { return cmp.Compare(a.arrives, b.arrives) })
	return crowd
}

// Guest is a visitor to be played elsewhere than in a simulation.
type Guest struct {
	Arrives  Duration // after the opening
	Patience Duration // after which a place that is not called is given up; [Forever]
	Claims   Duration // after the call; [Forever] for a no-show
	Stay     Duration // after the admission
	Bot      bool
}

// Forever is a patience without end, and a claim that never comes.
const Forever = Duration(forever) * Duration(time.Millisecond)

// Guests draws everybody who comes to a plan without problems, in the order of
// arrival.
func (p *Plan) Guests() []Guest {
	crowd := newCrowd(p)
	list := make([]Guest, len(crowd))
	for i, v := range crowd {
		list[i] = Guest{since(v.arrives), min(since(fairness.Time(v.patience)), Forever), since(fairness.Time(v.claims)), since(fairness.Time(v.stay)), v.kind == bot}
	}
	return list
}

// dice draws what people do.
type dice struct{ *rand.Rand }

// chance is true with that probability. It takes one number whatever that is:
// another no-show rate changes nobody's arrival.
func (d *dice) chance(p float64) bool { return d.Float64() < p }

// delay draws from a log-normal distribution with that median.
func (d *dice) delay(median Duration, spread float64) fairness.Millis {
	ms := float64(median.millis()) * math.Exp(spread*d.NormFloat64())
	return fairness.Millis(min(math.Round(ms), float64(forever-1)))
}

// patience draws how long somebody stays in line of whom a share leaves within
// the hour.
func (d *dice) patience(leave float64) fairness.Millis {
	x := d.ExpFloat64()
	if leave <= 0 {
		return forever
	}
	return fairness.Millis(min(x/-math.Log1p(-min(leave, 0.999999))*3_600_000, float64(forever/2)))
}

func (d *dice) person(p *Plan) visitor {
	v := visitor{patience: d.patience(p.People.Leave), claims: d.delay(p.People.Claims, humanSpread)}
	if d.chance(p.People.Fast) && p.Arrivals.Shape != Recorded {
		v.kind = fast
	}
	if d.chance(p.People.NoShow) {
		v.claims = forever
	}
	v.buys = d.chance(p.People.Buys)
	v.stay = d.stay(p)
	return v
}

// bot joins as soon as the room opens.
func (d *dice) bot(p *Plan) visitor {
	latency := p.Bots.Latency
	return visitor{
		kind: bot, arrives: fairness.Time(d.delay(latency, botSpread)), patience: forever,
		claims: d.delay(latency, botSpread), buys: true, stay: d.stay(p),
	}
}

// stay draws how long an admitted visitor keeps a place at the site. Touching
// a pass lets it live four times as long, and no longer.
func (d *dice) stay(p *Plan) fairness.Millis {
	if p.People.Stay == 0 {
		return p.Room.Session.millis()
	}
	return min(d.delay(p.People.Stay, humanSpread), 4*p.Room.Session.millis())
}

// newMoments returns what draws the arrival of person n of so many.
func newMoments(p *Plan) func(d *dice, n, of int, k kind) fairness.Time {
	a, starts := &p.Arrivals, p.Room.Starts.after()
	react := func(d *dice, k kind) fairness.Time {
		median := p.People.Reaction
		if k == fast {
			median = p.People.FastReaction
		}
		return fairness.Time(d.delay(median, humanSpread))
	}
	burst := func(d *dice, k kind) fairness.Time {
		ready, late := d.chance(a.Ready), d.ExpFloat64()/math.Ln2*float64(a.HalfLife.millis())
		at := react(d, k)
		if !ready {
			at += fairness.Time(min(late, float64(longest.millis())))
		}
		return at
	}
	switch a.Shape {
	case Steady:
		return func(d *dice, _, _ int, k kind) fairness.Time {
			return fairness.Time(d.Float64()*float64(a.Over.millis())) + react(d, k)
		}
	case Early:
		return func(d *dice, _, _ int, k kind) fairness.Time {
			early, at := d.chance(a.Early), d.Float64()*float64(starts)
			if early {
				return fairness.Time(at)
			}
			return starts + burst(d, k)
		}
	case Recorded:
		return newTape(a.Buckets).moment
	}
	return func(d *dice, _, _ int, k kind) fairness.Time { return burst(d, k) }
}

// tape is a recording to draw arrivals from.
type tape struct {
	buckets []Bucket
	before  []int // arrivals before each bucket
	total   int
	width   fairness.Time // of a bucket: the smallest distance of two
}

func newTape(list []Bucket) *tape {
	t := &tape{buckets: list, width: 1000, total: total(list)}
	sum := 0
	for i, b := range list {
		t.before = append(t.before, sum)
		sum += b.Count
		if i > 0 {
			if gap := (b.At - list[i-1].At).after(); i == 1 || gap < t.width {
				t.width = gap
			}
		}
	}
	return t
}

// moment spreads the n-th of so many people over the recording: with as many as
// were recorded each comes in the bucket of the recorded one.
func (t *tape) moment(d *dice, n, of int, _ kind) fairness.Time {
	at := (float64(n) + d.Float64()) / float64(of) * float64(t.total)
	i, found := slices.BinarySearch(t.before, int(at))
	if !found {
		i--
	}
	for i+1 < len(t.before) && t.before[i+1] <= int(at) {
		i++ // past those without arrivals
	}
	within := (at - float64(t.before[i])) / float64(max(t.buckets[i].Count, 1))
	return t.buckets[i].At.after() + fairness.Time(math.Floor(min(within, 1)*float64(t.width)*0.999999))
}

// ticket is that of the visitor with a number, in the form the rules want.
// Nobody's secret is behind it.
func ticket(number uint32) (t fairness.Ticket) {
	binary.BigEndian.PutUint32(t[:], number)
	t[6], t[8] = 0x80, 0x80
	return t
}

// number is that of a ticket's visitor.
func number(t fairness.Ticket) uint32 { return binary.BigEndian.Uint32(t[:]) }
