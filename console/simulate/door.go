package simulate

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
)

// DoorKind is what a join has to show.
type DoorKind string

// The kinds of doors.
const (
	Open     DoorKind = "open"     // a join shows nothing
	Work     DoorKind = "work"     // a join shows that it was computed for
	Accounts DoorKind = "accounts" // a join shows an account, and each account joins once
	Codes    DoorKind = "codes"    // a join shows a code, and each code joins once
)

// Doors are all kinds of doors, in the order of [CompareDoors].
var Doors = []DoorKind{Open, Work, Accounts, Codes}

// Door is what joins need. The fields of kinds other than its own have no effect.
type Door struct {
	Kind      DoorKind `json:"kind"`
	Bits      int      `json:"bits"`       // work: zero bits; a join takes 2^bits tries on average
	PhoneRate int      `json:"phone_rate"` // work: tries a second on the phone of a person
	CoreRate  int      `json:"core_rate"`  // work: tries a second on one processor core of an operator
	Cores     int      `json:"cores"`      // work: number of cores of each operator
	Accounts  int      `json:"accounts"`   // accounts: number that each operator has; every person has one
	Codes     int      `json:"codes"`      // codes: number of people who are given one; 0: all
	Sold      float64  `json:"sold"`       // codes: share of the codes that their holders sell to the operators
}

func defaultDoor() Door {
	return Door{
		Kind: Open, Bits: 20, PhoneRate: credential.PhoneRate, CoreRate: 10_000_000, Cores: 16,
		Accounts: 10, Sold: 0.05,
	}
}

// Label describes the door in a few words.
func (d *Door) Label() string {
	switch d.Kind {
	case Work:
		return fmt.Sprintf("work of %d bits", d.Bits)
	case Accounts:
		return "accounts, " + Count(d.Accounts) + " for each operator"
	case Codes:
		if d.Codes > 0 {
			return Count(d.Codes) + " codes, " + Percent(d.Sold) + " of them sold on"
		}
		return "codes, " + Percent(d.Sold) + " of them sold on"
	case Open:
	}
	return "open"
}

// phoneTime returns how many seconds a phone works for one join on average.
func (d *Door) phoneTime() float64 { return math.Exp2(float64(d.Bits)) / float64(d.PhoneRate) }

// coreTime returns how many seconds a core of an operator works for one join on average.
func (d *Door) coreTime() float64 { return math.Exp2(float64(d.Bits)) / float64(d.CoreRate) }

// seconds returns a duration, at most 200 years.
func seconds(x float64) Duration {
	return Duration(math.Round(min(x, 200*365*86_400)*1000)) * Duration(time.Millisecond)
}

// cost returns what a number of joins of a group cost.
func (d *Door) cost(name Name, joins int) Cost {
	each := d.phoneTime()
	if name == Machines {
		each = d.coreTime()
	}
	switch d.Kind {
	case Work:
		return Cost{Work: seconds(each * float64(joins))}
	case Accounts, Codes:
		return Cost{Shown: joins}
	case Open:
	}
	return Cost{}
}

func (c *checks) door(d *Door) {
	kinds := make([]string, len(Doors))
	for i, k := range Doors {
		kinds[i] = string(k)
	}
	const maxRate = 1_000_000_000_000
	c.Check(slices.Contains(Doors, d.Kind), "door.kind", "must be one of "+strings.Join(kinds, ", "))
	c.between(d.Bits, 1, credential.MaxBits, "door.bits")
	c.between(d.PhoneRate, 1, maxRate, "door.phone_rate")
	c.between(d.CoreRate, 1, maxRate, "door.core_rate")
	c.between(d.Cores, 1, 1_000_000, "door.cores")
	c.between(d.Accounts, 0, MaxVisitors, "door.accounts")
	c.between(d.Codes, 0, MaxVisitors, "door.codes")
	c.share(d.Sold, "door.sold")
}

func (c *checks) between(n, lo, hi int, field string) {
	c.Check(n >= lo && n <= hi, field, fmt.Sprintf("must be between %d and %d", lo, hi))
}

// method is the name of the only method of a simulated room.
const method = "door"

// methods adds the method that the door needs to a policy. Work needs a beacon: one with a round each second. The keys
// are valid ones that no simulated credential or round is verified with.
func (d *Door) methods(p *fairness.Policy) {
	basePoint := "58" + strings.Repeat("66", 31)
	m := credential.Method{Name: method, Kind: credential.Signed, Key: basePoint}
	switch d.Kind {
	case Open:
		return
	case Work:
		m = credential.Method{Name: method, Kind: credential.Work, Bits: uint8(d.Bits)} //nolint:gosec // 1 to MaxBits
		chain := beacon.Chain{ID: "simulation", PublicKey: beacon.Quicknet().PublicKey, Genesis: 1, Period: 1}
		p.Beacon = &fairness.Beacon{Chain: chain, Margin: fairness.MinMargin}
	case Accounts, Codes:
	}
	p.Methods = []credential.Method{m}
	p.Lanes[0].Needs = []string{method}
}

// show returns the credentials of a visitor. In place of a signature the evidence names the ticket, which the oracle
// checks.
func (d *Door) show(v *visitor, t fairness.Ticket) []credential.Credential {
	if v.shows == 0 {
		return nil
	}
	c := credential.Credential{Method: method, Evidence: t[:]}
	if d.Kind != Work {
		c.Nullifier = binary.BigEndian.AppendUint32(make([]byte, 0, credential.NullifierSize), v.shows)
		c.Nullifier = c.Nullifier[:credential.NullifierSize]
	}
	return []credential.Credential{c}
}

// VerifyCredential implements [fairness.Oracle].
func (o *oracle) VerifyCredential(_ *credential.Verifier, s credential.Subject, c credential.Credential) error {
	if !bytes.Equal(c.Evidence, s.Ticket[:]) {
		return errors.New("the credential is of another ticket")
	}
	if len(c.Nullifier) == 0 && len(s.Round) == 0 {
		return credential.ErrRound
	}
	return nil
}

// VerifyRound implements [fairness.Oracle].
func (o *oracle) VerifyRound(_ *fairness.Beacon, round uint64, signature []byte) error {
	if !bytes.Equal(signature, o.sign(round)) {
		return errors.New("the signature is of another round")
	}
	return nil
}

// sign returns the signature of a beacon round; nil for round 0, that of a room without a beacon.
func (o *oracle) sign(round uint64) []byte {
	if round == 0 {
		return nil
	}
	return binary.BigEndian.AppendUint64(make([]byte, beacon.SignatureSize-8), round)
}

// equip gives the crowd what the door needs, as far as it has that, and sorts it by the times at which it joins. It
// changes nothing else, so that the same people come to every door.
func (p *Plan) equip(crowd []visitor) {
	d := &dice{rand.New(rand.NewPCG(p.Seed, 2))}
	switch p.Door.Kind {
	case Open:
	case Work:
		p.work(crowd, d)
		slices.SortStableFunc(crowd, func(a, b visitor) int { return cmp.Compare(a.arrives, b.arrives) })
	case Accounts:
		p.handOut(crowd)
	case Codes:
		p.sell(crowd, d)
	}
}

// operators returns the number of operators of the bots.
func (p *Plan) operators() int { return (p.Bots.Count + p.Bots.PerOperator - 1) / p.Bots.PerOperator }

// handOut gives each person an account, and the bots of each operator its accounts in turn.
func (p *Plan) handOut(crowd []visitor) {
	accounts := min(p.Door.Accounts, p.Bots.PerOperator)
	people, robots := uint32(0), 0
	for i := range crowd {
		v := &crowd[i]
		if v.kind != bot {
			people++
			v.shows = people
			continue
		}
		operator, number := robots%p.operators(), robots/p.operators()
		robots++
		if accounts > 0 {
			v.shows = uint32(p.Visitors + operator*accounts + number%accounts) //nolint:gosec // below 2^24
		}
	}
}

// sell gives codes to people at random. Some of them sell theirs, and the bots use the sold codes.
func (p *Plan) sell(crowd []visitor, d *dice) {
	var people []int
	for i := range crowd {
		if crowd[i].kind != bot {
			people = append(people, i)
		}
	}
	d.Shuffle(len(people), func(i, j int) { people[i], people[j] = people[j], people[i] })
	if p.Door.Codes > 0 {
		people = people[:min(p.Door.Codes, len(people))]
	}
	sold := int(math.Round(p.Door.Sold * float64(len(people))))
	for code, i := range people[sold:] {
		crowd[i].shows = uint32(sold + code + 1) //nolint:gosec // at most MaxVisitors
	}
	code := uint32(0)
	for i := range crowd {
		if v := &crowd[i]; v.kind == bot && int(code) < sold {
			code++
			v.shows = code
		}
	}
}

// work delays each join until its work is done, which begins once the beacon's round has appeared. An operator's bots
// share its cores: each join is computed by all of them, one join after the other.
func (p *Plan) work(crowd []visitor, d *dice) {
	policy := p.policy()
	round, _ := policy.WorkRound()
	begins := fairness.Time(policy.Beacon.Emitted(round))
	idle := make([]fairness.Time, max(p.operators(), 1)) // when each operator's cores have nothing to do
	for i := range idle {
		idle[i] = begins
	}
	robots := 0
	for i := range crowd {
		v, tries := &crowd[i], d.ExpFloat64()
		v.shows = 1
		if v.kind != bot {
			v.delay(max(v.arrives, begins)+lasting(tries*p.Door.phoneTime()), p.Room.Starts.after())
			continue
		}
		free := &idle[robots%len(idle)]
		robots++
		*free = min(max(*free, v.arrives)+lasting(tries*p.Door.coreTime()/float64(p.Door.Cores)), longest.after())
		v.delay(*free, p.Room.Starts.after())
	}
}

// lasting returns a number of seconds, at most [longest].
func lasting(seconds float64) fairness.Time {
	return fairness.Time(min(seconds*1000, float64(longest.millis())))
}

// delay makes a visitor join at a later time. Its patience still counts from the start of calls.
func (v *visitor) delay(to, starts fairness.Time) {
	if v.patience < forever {
		v.patience -= fairness.Millis(max(starts-v.arrives, 0) - max(starts-to, 0))
	}
	v.arrives = to
}
