package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/proofline/proofline/internal/invalid"
)

const (
	wantCount    = "must be a whole number, 0 or more"
	wantShare    = "must be a share from 0 to 1, such as 0.1 for 10%"
	wantDuration = `must be a duration such as "30s"`
	wantWindows  = `must be a list of {"from": duration, "length": duration}`
	wantBuckets  = `must be a list of {"at": duration, "count": number}`
)

// unsaid marks a number that a plan leaves out.
const unsaid = math.MinInt

// ParsePlan parses the JSON of a plan. Missing fields have the values of [Default], with two exceptions: a tenth
// of the visitors are bots, whatever their number; and a recording determines the number of visitors, without
// bots. The error is an [*invalid.Error] that lists every field that is unknown, unreadable or invalid.
func ParsePlan(data []byte) (Plan, error) {
	p := Default()
	p.Visitors, p.Bots.Count = unsaid, unsaid
	o := &object{problems: &invalid.List{}}
	o.open(data)
	o.plan(&p)
	p.fill()
	if err := o.problems.Err(); err != nil {
		return Plan{}, err
	}
	if err := p.Problems().Err(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// fill sets the numbers that the plan leaves out.
func (p *Plan) fill() {
	recorded := p.Arrivals.Shape == Recorded
	switch bots := &p.Bots.Count; {
	case *bots != unsaid:
	case recorded:
		*bots = 0
	case p.Visitors != unsaid:
		*bots = max(p.Visitors, 0) / 10
	default:
		*bots = Default().Bots.Count
	}
	switch {
	case p.Visitors != unsaid:
	case recorded && total(p.Arrivals.Buckets) > 0:
		p.Visitors = total(p.Arrivals.Buckets) + p.Bots.Count
	default:
		p.Visitors = Default().Visitors
	}
}

// object reads the members of a JSON object one by one, in order to find all problems and not only
// the first.
type object struct {
	prefix   string
	raw      map[string]json.RawMessage
	known    []string // names of the members read so far
	problems *invalid.List
}

func (o *object) open(data []byte) {
	if err := json.Unmarshal(data, &o.raw); err != nil || o.raw == nil {
		detail := "must be a JSON object"
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			detail += fmt.Sprintf("; after %d bytes: %v", syntax.Offset, syntax)
		}
		o.raw = nil
		o.problem("", detail)
	}
}

func (o *object) problem(name, detail string) {
	if len(*o.problems) < invalid.Max {
		o.problems.Add(strings.Trim(o.prefix+name, "."), detail)
	}
}

// has reports whether a member is present and not null.
func (o *object) has(name string) bool {
	o.known = append(o.known, name)
	raw, ok := o.raw[name]
	return ok && string(raw) != "null"
}

func (o *object) read(name string, into any, want string) {
	if o.has(name) && json.Unmarshal(o.raw[name], into) != nil {
		o.problem(name, want)
	}
}

// inside reads the members of an object member, if it is present.
func (o *object) inside(name string, members func(*object)) {
	if o.has(name) {
		o.element(name, o.raw[name], members)
	}
}

func (o *object) element(name string, raw json.RawMessage, members func(*object)) {
	in := &object{prefix: o.prefix + name + ".", problems: o.problems}
	in.open(raw)
	members(in)
	in.close()
}

// list reads a list of objects.
func (o *object) list(name, want string, each func(in *object)) {
	var elements []json.RawMessage
	o.read(name, &elements, want)
	for i, raw := range elements {
		o.element(fmt.Sprintf("%s[%d]", name, i), raw, each)
	}
}

// close reports members that were not read.
func (o *object) close() {
	for _, name := range slices.Sorted(maps.Keys(o.raw)) {
		if !slices.Contains(o.known, name) {
			o.problem(name, "is unknown; known fields are "+strings.Join(o.known, ", "))
		}
	}
}

func (o *object) plan(p *Plan) {
	o.inside("room", func(in *object) { in.room(&p.Room) })
	o.read("visitors", &p.Visitors, wantCount)
	o.read("tickets", &p.Tickets, wantCount)
	o.inside("arrivals", func(in *object) { in.arrivals(&p.Arrivals) })
	o.inside("people", func(in *object) { in.people(&p.People) })
	o.inside("bots", func(in *object) {
		in.read("count", &p.Bots.Count, wantCount)
		in.read("latency", &p.Bots.Latency, wantDuration)
		in.read("per_operator", &p.Bots.PerOperator, wantCount)
	})
	o.inside("door", func(in *object) { in.door(&p.Door) })
	o.read("seed", &p.Seed, wantCount)
	o.close()
}

func (o *object) room(r *Room) {
	o.read("starts", &r.Starts, wantDuration)
	o.read("closes", &r.Closes, wantDuration)
	o.list("windows", wantWindows, func(in *object) {
		var w WindowRule
		in.read("from", &w.From, wantDuration)
		in.read("length", &w.Length, wantDuration)
		r.Windows = append(r.Windows, w)
	})
	o.inside("outflow", func(in *object) {
		in.read("per_minute", &r.Outflow.PerMinute, wantCount)
		in.read("max_active", &r.Outflow.MaxActive, wantCount)
	})
	o.read("claim", &r.Claim, wantDuration)
	o.read("session", &r.Session, wantDuration)
	o.read("draw", &r.Draw, wantDuration)
}

func (o *object) arrivals(a *Arrivals) {
	o.read("shape", &a.Shape, "must be burst, steady, early or recorded")
	o.read("half_life", &a.HalfLife, wantDuration)
	o.read("ready", &a.Ready, wantShare)
	o.read("over", &a.Over, wantDuration)
	o.read("early", &a.Early, wantShare)
	o.list("buckets", wantBuckets, func(in *object) {
		var b Bucket
		in.read("at", &b.At, wantDuration)
		in.read("count", &b.Count, wantCount)
		a.Buckets = append(a.Buckets, b)
	})
}

func (o *object) people(p *People) {
	o.read("reaction", &p.Reaction, wantDuration)
	o.read("fast", &p.Fast, wantShare)
	o.read("fast_reaction", &p.FastReaction, wantDuration)
	o.read("claims", &p.Claims, wantDuration)
	o.read("no_show", &p.NoShow, wantShare)
	o.read("leave", &p.Leave, wantShare)
	o.read("buys", &p.Buys, wantShare)
	o.read("stay", &p.Stay, wantDuration)
}

func (o *object) door(d *Door) {
	o.read("kind", &d.Kind, "must be open, work, accounts or codes")
	o.read("bits", &d.Bits, wantCount)
	o.read("phone_rate", &d.PhoneRate, wantCount)
	o.read("core_rate", &d.CoreRate, wantCount)
	o.read("cores", &d.Cores, wantCount)
	o.read("accounts", &d.Accounts, wantCount)
	o.read("codes", &d.Codes, wantCount)
	o.read("sold", &d.Sold, wantShare)
}
