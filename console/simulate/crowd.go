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

// Spreads of the log-normal delays: standard deviations of their logarithms. With 0.6, a tenth takes
// more than twice the median.
const (
	humanSpread = 0.6
	botSpread   = 0.5
)

// kind is the kind of a visitor.
type kind uint8

const (
	slow kind = iota
	fast
	bot
)

// status is the state of a visitor.
type status uint8

const (
	away     status = iota // has not arrived yet
	refused                // arrived when the room was closed
	barred                 // showed nothing, or an account or code that another ticket had shown
	inLine                 // joined
	summoned               // called
	admitted
	noShow
	left
)

// visitor is one ticket in the line. Its behaviour is drawn in advance, so that the same people arrive whatever
// the room's windows are.
type visitor struct {
	arrives  fairness.Time
	called   fairness.Time
	gone     fairness.Time     // time of admission or leaving
	position fairness.Position // among those of visitors; 0: none
	patience fairness.Millis   // time in line after which it gives up, unless called
	claims   fairness.Millis   // time from the call to the claim
	stay     fairness.Millis   // time from admission until its session ends
	shows    uint32            // number of its account or code; 0: it has nothing to show
	kind     kind
	status   status
	buys     bool
	bought   bool
}

// forever is the patience of visitors that never give up, and the claim delay of no-shows.
const forever fairness.Millis = math.MaxInt32

// newCrowd draws all visitors, in the order of arrival.
func newCrowd(p *Plan) []visitor {
	d := &dice{rand.New(rand.NewPCG(p.Seed, 1))}
	people := p.Visitors - p.Bots.Count
	crowd := make([]visitor, 0, p.Visitors)
	moments := newMoments(p)
	for n := range people {
		v := d.person(p)
		v.arrives = moments(d, n, people, v.kind)
		if v.patience < forever {
			// patience is counted from the start of calls
			v.patience += fairness.Millis(max(p.Room.Starts.after()-v.arrives, 0))
		}
		crowd = append(crowd, v)
	}
	for range p.Bots.Count {
		crowd = append(crowd, d.bot(p))
	}
	slices.SortStableFunc(crowd, func(a, b visitor) int { return cmp.Compare(a.arrives, b.arrives) })
	return crowd
}

// Guest is a visitor for use outside of a simulation.
type Guest struct {
	Arrives  Duration // time after the opening
	Patience Duration // time in line after which it gives up, unless called; [Forever]: it never does
	Claims   Duration // time from the call to the claim; [Forever]: a no-show
	Stay     Duration // time from admission until its session ends
	Bot      bool
}

// Forever is the patience of visitors that never give up, and the claim delay of no-shows.
const Forever = Duration(forever) * Duration(time.Millisecond)

// Guests draws all visitors of a valid plan, in the order in which they join: work delays them.
func (p *Plan) Guests() []Guest {
	crowd := newCrowd(p)
	if p.Door.Kind == Work {
		p.equip(crowd)
	}
	list := make([]Guest, len(crowd))
	for i, v := range crowd {
		list[i] = Guest{since(v.arrives), min(since(fairness.Time(v.patience)), Forever),
			since(fairness.Time(v.claims)), since(fairness.Time(v.stay)), v.kind == bot}
	}
	return list
}

// Compress brings arrivals after the start forward in proportion, so that the last guest arrives at most that long
// after it.
func Compress(list []Guest, starts, most Duration) {
	var last Duration
	for _, g := range list {
		last = max(last, g.Arrives-starts)
	}
	for i := range list {
		if g := &list[i]; g.Arrives > starts && last > most {
			g.Arrives = starts + Duration(float64(g.Arrives-starts)/float64(last)*float64(most))
		}
	}
}

// dice draws the behaviour of visitors.
type dice struct{ *rand.Rand }

// chance returns true with probability p. It always draws one number, so that another no-show rate
// does not change arrivals.
func (d *dice) chance(p float64) bool { return d.Float64() < p }

// delay draws from a log-normal distribution with the given median.
func (d *dice) delay(median Duration, spread float64) fairness.Millis {
	ms := float64(median.millis()) * math.Exp(spread*d.NormFloat64())
	return fairness.Millis(min(math.Round(ms), float64(forever-1)))
}

// patience draws how long a visitor stays in line, if the share leave of them gives up per hour.
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

// bot draws a bot, which joins as soon as the room opens.
func (d *dice) bot(p *Plan) visitor {
	latency := p.Bots.Latency
	return visitor{
		kind: bot, arrives: fairness.Time(d.delay(latency, botSpread)), patience: forever,
		claims: d.delay(latency, botSpread), buys: true, stay: d.stay(p),
	}
}

// stay draws how long an admitted visitor's session lasts. A session that is extended lasts at most four times as
// long.
func (d *dice) stay(p *Plan) fairness.Millis {
	if p.People.Stay == 0 {
		return p.Room.Session.millis()
	}
	return min(d.delay(p.People.Stay, humanSpread), 4*p.Room.Session.millis())
}

// newMoments returns a function that draws the arrival of the n-th person of a given number.
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
	default:
		return func(d *dice, _, _ int, k kind) fairness.Time { return burst(d, k) }
	}
}

// tape is a recording from which arrivals are drawn.
type tape struct {
	buckets []Bucket
	before  []int // number of arrivals before each bucket
	total   int
	width   fairness.Time // width of a bucket: the smallest gap between two
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

// moment draws the arrival of the n-th person of a given number by spreading them over the recording. With as many
// people as were recorded, each arrives in the bucket of its recorded counterpart.
func (t *tape) moment(d *dice, n, of int, _ kind) fairness.Time {
	at := (float64(n) + d.Float64()) / float64(of) * float64(t.total)
	i, found := slices.BinarySearch(t.before, int(at))
	if !found {
		i--
	}
	for i+1 < len(t.before) && t.before[i+1] <= int(at) {
		i++ // skip empty buckets
	}
	within := (at - float64(t.before[i])) / float64(max(t.buckets[i].Count, 1))
	return t.buckets[i].At.after() + fairness.Time(math.Floor(min(within, 1)*float64(t.width)*0.999999))
}

// ticket returns a valid ticket for a visitor's number. It has no secret.
func ticket(number uint32) (t fairness.Ticket) {
	binary.BigEndian.PutUint32(t[:], number)
	t[6], t[8] = 0x80, 0x80
	return t
}

// number returns the number of a ticket's visitor.
func number(t fairness.Ticket) uint32 { return binary.BigEndian.Uint32(t[:]) }
