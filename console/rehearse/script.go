package rehearse

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/door"
)

// Limits of a script.
const (
	MaxTickets  = 2_000
	MaxNetworks = 1_000
)

// Script is a program that asks for many tickets as soon as the room opens.
type Script struct {
	Tickets  int // from 0, no script, to [MaxTickets]
	Networks int // number of networks that it sends its joins from, at most [MaxNetworks]; 0: one
}

func (s *Script) problems() (list invalid.List) {
	if s.Tickets < 0 || s.Tickets > MaxTickets {
		list.Add("script", "must be between 0 and 2000")
	}
	if s.Networks < 0 || s.Networks > MaxNetworks {
		list.Add("networks", "must be between 1 and 1000")
	}
	return list
}

// address returns the address that the script sends its n-th join from. No client has one of these: they are reserved.
// Each is in a /16 and a /24 of its own, as far as there are so many.
func (s *Script) address(n int, host byte) netip.Addr {
	n %= max(s.Networks, 1)
	return netip.AddrFrom4([4]byte{240 + byte(n>>8), byte(n), host, 1}) //nolint:gosec // n is below MaxNetworks
}

// Networks charges joins to the networks that they come from. *limit.Limits implements it.
type Networks interface {
	// Join returns an error if a network may not join a room any more.
	Join(from netip.Addr, room string) error
	// NoTicket refunds a join that the room did not take.
	NoTicket(from netip.Addr, room string)
}

// ScriptResult is a script's attempt at the first places of a rehearsal.
type ScriptResult struct {
	Script
	Entrance
	Progress
	Refused   [refusals]int // joins, by [Refusal]; their sum is Failed
	First     int           // first places of its lane that are compared
	Drawn     int           // how many of these synthetic visitors have got
	Ahead     int           // how many of these the script has got
	Predicted float64       // share of the first places that the simulator gives it
}

// Refusal is why a join of the script was refused.
type Refusal int

// The reasons.
const (
	ByAccount Refusal = iota // its account or code has a place
	ByLimit                  // the method takes no more credentials
	ByNetwork                // its network has reached its limit
	TooLate                  // the room takes no more joins
	refusals
)

// Share returns the script's share of the first places that are drawn.
func (r *ScriptResult) Share() float64 { return float64(r.Ahead) / float64(max(r.Drawn, 1)) }

// refuse counts a refused join.
func (r *ScriptResult) refuse(err error) {
	why := TooLate
	var used *door.UsedError
	switch {
	case errors.Is(err, errUsed) || errors.As(err, &used):
		why = ByAccount
	case errors.Is(err, errNothing) || door.Methods(err) != nil:
		why = ByLimit
	case errors.Is(err, errNetwork):
		why = ByNetwork
	}
	r.Refused[why]++
}

// errNetwork is returned for a join of a network that has reached its limit.
var errNetwork = errors.New("the network has reached its limit")

// Entrance is the lane that is the easiest to get into for a script, and what the script has for it.
type Entrance struct {
	Lane  fairness.Lane
	Needs []string
	Door  simulate.Door // that of the simulator
	Holds int           // number of accounts or codes of the script; 0: it needs none
	crowd int           // number of people who come to this lane
}

// entrance finds the easiest lane of a room: one that needs nothing, or else work, or else an account or a code. Of
// these the script has as many as in the simulator: ten accounts, or the codes that one in twenty of the people sell.
func (p *Plan) entrance(base room.Config) (e Entrance) {
	methods := map[string]credential.Method{}
	for _, m := range base.Methods {
		methods[m.Name] = m
	}
	e.Door, e.Lane, e.crowd = simulate.Default().Door, fairness.General, p.Visitors
	lanes, weights, easiest := base.Lanes, 0, -1
	for _, lane := range lanes {
		weights += int(lane.Weight)
	}
	for _, lane := range lanes {
		one := simulate.Default().Door
		for _, name := range lane.Needs {
			one = harder(one, methods[name])
		}
		if rank := slices.Index(simulate.Doors, one.Kind); easiest < 0 || rank < easiest {
			easiest = rank
			e.Lane, e.Needs, e.Door = lane.Name, lane.Needs, one
			e.crowd = max(p.Visitors*int(lane.Weight)/max(weights, 1), 1)
		}
	}
	switch e.Door.Kind {
	case simulate.Accounts:
		e.Holds = e.Door.Accounts
	case simulate.Codes:
		given := min(e.Door.Codes, e.crowd)
		e.Holds = max(int(float64(given)*e.Door.Sold), 1)
	case simulate.Open, simulate.Work:
	}
	return e
}

// harder returns a door that needs a method more. An issuer's method with a limit stands for codes, and one without for
// accounts.
func harder(d simulate.Door, m credential.Method) simulate.Door {
	kind := simulate.Accounts
	switch {
	case m.Kind == credential.Work:
		kind, d.Bits = simulate.Work, int(m.Bits)
	case m.Limit > 0:
		kind, d.Codes = simulate.Codes, int(min(m.Limit, simulate.MaxVisitors))
	}
	if slices.Index(simulate.Doors, kind) > slices.Index(simulate.Doors, d.Kind) {
		d.Kind = kind
	}
	return d
}

// firsts returns how many first places are compared: those of half of the people, or the seats if there are fewer.
func (e *Entrance) firsts(seats uint32) int {
	n := max(e.crowd/2, 1)
	if seats > 0 {
		n = min(n, int(seats))
	}
	return n
}

// samples is how many crowds the simulator plays for a prediction.
const samples = 8

// predict returns the share of the first places that the script gets in the simulator, which knows of windows and of
// the door, but not of networks and lots.
func (p *Plan) predict(ctx context.Context, c room.Config, script *ScriptResult) (float64, error) {
	sale := p.crowd(c, &script.Entrance)
	sale.Visitors, sale.Tickets = script.crowd+script.Tickets, script.First
	if d := &sale.Door; d.Kind == simulate.Codes { // whoever sells a code does not come
		sale.Visitors += script.Holds
		d.Codes = min(d.Codes, script.crowd+script.Holds)
		d.Sold = float64(script.Holds) / float64(d.Codes)
	}
	ahead, all := 0, 0
	for range samples {
		sale.Seed++
		r, err := simulate.Run(ctx, sale, nil)
		if err != nil {
			return 0, err
		}
		robots, _ := r.Group(simulate.Machines)
		ahead, all = ahead+robots.Front, all+r.Front
	}
	return float64(ahead) / float64(max(all, 1)), nil
}

// accounts returns how many accounts or codes the script has with each issuer. Those of people have higher numbers.
func (r *ScriptResult) accounts() int {
	if r.Tickets == 0 {
		return 0
	}
	return cmp.Or(r.Holds, r.Door.Accounts)
}

// wish returns what the script joins with for its n-th ticket: its accounts or codes in turn, as many seats as it may,
// and with each account once what gives it one more lot.
func (r *ScriptResult) wish(n int, p *fairness.Policy, host byte) wish {
	holds := r.accounts()
	w := wish{lane: r.Lane, seats: max(p.Party, 1), account: n % holds, from: r.address(n, host)}
	for _, m := range p.Methods {
		if slices.Contains(r.Needs, m.Name) || n < holds && slices.Contains(p.Lots, m.Name) {
			w.shows = append(w.shows, m.Name)
		}
	}
	return w
}

// anyHost returns the part of the script's addresses in which rehearsals differ, so that they share no budgets.
func anyHost() byte { return byte(rand.UintN(256)) } //nolint:gosec // no secret

// newScript returns what a plan's script sets out to do. Without a script, it only has the entrance that people use.
func (p *Plan) newScript(base room.Config) ScriptResult {
	r := ScriptResult{Script: p.Script, Entrance: p.entrance(base)}
	if r.Tickets == 0 {
		return r
	}
	r.Networks = cmp.Or(r.Networks, 1)
	r.First = r.firsts(base.Seats)
	return r
}
