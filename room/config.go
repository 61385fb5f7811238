package room

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/setting"
)

// Defaults of a configuration.
const (
	DefaultNotice     = setting.DefaultNotice
	DefaultClaim      = setting.DefaultClaim
	DefaultGrace      = setting.DefaultGrace
	DefaultSession    = setting.DefaultSession
	DefaultWindow     = time.Minute
	DefaultPerMinute  = setting.DefaultPerMinute
	DefaultMaxWaiting = setting.DefaultMaxWaiting
)

// Duration is a time.Duration that JSON writes as "1m30s".
type Duration time.Duration

// MarshalText formats the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses what time.ParseDuration accepts, in whole milliseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	v, ok := setting.ParseDuration(string(text))
	if !ok {
		return fmt.Errorf("must be a duration such as 30s or 2m")
	}
	*d = Duration(v)
	return nil
}

func (d Duration) millis() fairness.Millis {
	return fairness.Millis(time.Duration(d).Milliseconds())
}

// Config is an organizer's configuration of a room. [Config.withDefaults] fills in what is not given.
type Config struct {
	Slug    string       `json:"slug"`
	Title   string       `json:"title"`
	Opens   *time.Time   `json:"opens"`            // default: with the first window, or at once
	Starts  *time.Time   `json:"starts"`           // default: opens
	Closes  *time.Time   `json:"closes,omitempty"` // default: never
	Windows []WindowRule `json:"windows"`          // default: one until starts, then a minute each
	Slots   *Duration    `json:"slots,omitempty"`  // length of the slots of the first window; default: none
	Notice  *Duration    `json:"notice"`           // default 1m
	// Methods are the ways to show something about a visitor. Default: none.
	Methods []credential.Method `json:"methods,omitempty"`
	Lanes   []LaneRule          `json:"lanes"`          // default: one
	Lots    []string            `json:"lots,omitempty"` // methods that give one more lot, in the order of the room's
	Party   uint32              `json:"party"`          // seats that a visitor may join for; 0: one
	Seats   uint32              `json:"seats"`          // 0: any number
	Outflow Outflow             `json:"outflow"`
	Claim   *Duration           `json:"claim"`            // default 5m
	Extend  *Duration           `json:"extend,omitempty"` // more time to claim, once, on request; default: none
	Grace   *Duration           `json:"grace"`            // default 20s
	Session *Duration           `json:"session"`          // default 15m
	// Beacon is "none" or the name of a chain that the server knows, such as
	// "drand:quicknet". Default: the server's first chain, if it has one.
	Beacon string `json:"beacon"`
	// Margin is the minimum time between a freeze and its beacon round.
	Margin *Duration `json:"margin,omitempty"` // default 5s, with a beacon
	// Quorum is how many of the server's witnesses should cosign each freeze; 0: no witnesses. Default: more
	// than half, with a beacon.
	Quorum *uint32 `json:"quorum,omitempty"`
	Settings
}

// WindowRule opens windows of one length from a given time on.
type WindowRule struct {
	From   *time.Time `json:"from"` // default for the first rule: opens
	Length Duration   `json:"length"`
}

// LaneRule is a lane: a line of its own, which shares the calls by weight.
type LaneRule struct {
	Name   fairness.Lane `json:"name"`
	Weight uint32        `json:"weight"`
	Needs  []string      `json:"needs,omitempty"` // methods that its arrivals show, in the order of the room's
}

// Outflow is the pace at which visitors are admitted.
type Outflow struct {
	PerMinute uint32 `json:"per_minute"` // default 60
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// ParseConfig parses a room's JSON. The error is an [*invalid.Error] that lists every field that is unknown or
// malformed, and those problems of the other fields that do not depend on the time.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	members, problems := setting.Read(data)
	if members == nil {
		return c, problems.Err()
	}
	if err := json.Unmarshal(members, &c); err != nil {
		return c, fmt.Errorf("read a room's configuration: %w", err)
	}
	if len(problems) > 0 { // if there are none, creating the room reports the problems below
		setting.Merge(&problems, invalid.Problems(c.check(time.UnixMilli(0))))
	}
	return c, problems.Err()
}

// withDefaults returns the configuration with all defaults filled in, as of now.
func (c Config) withDefaults(now time.Time) Config {
	if c.Opens == nil && len(c.Windows) > 0 {
		c.Opens = c.Windows[0].From
	}
	if c.Opens == nil {
		c.Opens = &now
	}
	if c.Starts == nil {
		c.Starts = c.Opens
	}
	if len(c.Windows) == 0 {
		c.Windows = defaultWindows(*c.Opens, *c.Starts)
	}
	if c.Windows[0].From == nil {
		c.Windows = slices.Clone(c.Windows)
		c.Windows[0].From = c.Opens
	}
	if len(c.Lanes) == 0 {
		c.Lanes = []LaneRule{{Name: fairness.General, Weight: 1}}
	}
	if c.Outflow.PerMinute == 0 {
		c.Outflow.PerMinute = DefaultPerMinute
	}
	if c.Notice == nil {
		d := Duration(DefaultNotice)
		c.Notice = &d
	}
	if c.Claim == nil {
		d := Duration(DefaultClaim)
		c.Claim = &d
	}
	if c.Grace == nil {
		d := Duration(DefaultGrace)
		c.Grace = &d
	}
	if c.Session == nil {
		d := Duration(DefaultSession)
		c.Session = &d
	}
	c.Title = c.title()
	return c
}

func (c Config) title() string { return cmp.Or(c.Title, c.Slug) }

// defaultWindows returns one window from opening to start, in which all arrivals are equal, followed by windows of
// a minute.
func defaultWindows(opens, starts time.Time) []WindowRule {
	before := Duration(starts.Truncate(time.Millisecond).Sub(opens.Truncate(time.Millisecond)))
	if before.millis() < fairness.MinWindow {
		return []WindowRule{{From: &opens, Length: Duration(DefaultWindow)}}
	}
	return []WindowRule{
		{From: &opens, Length: before},
		{From: &starts, Length: Duration(DefaultWindow)},
	}
}

// problems lists what is invalid apart from the policy.
func (c Config) problems() invalid.List {
	list := setting.Check("slug", c.Slug)
	list = append(list, setting.Check("title", c.Title)...)
	list = append(list, setting.Check("beacon", c.Beacon)...)
	for i, w := range c.Windows {
		if i > 0 && w.From == nil {
			list.Add(fmt.Sprintf("windows[%d].from", i), "is needed for every rule but the first")
		}
	}
	return append(list, c.Settings.Problems()...)
}

// policy returns the policy to publish: identity comes from id, the rest from the configuration.
func (c Config) policy(id fairness.Policy) (*fairness.Policy, error) {
	p := id
	p.Seats = c.Seats
	if c.Party > 1 {
		p.Party = c.Party
	}
	p.Methods, p.Lanes = c.Methods, nil
	for _, l := range c.Lanes {
		p.Lanes = append(p.Lanes, fairness.LaneRule(l))
	}
	p.Opens, p.Starts, p.Closes = millis.Of(*c.Opens), millis.Of(*c.Starts), closing(c.Closes)
	p.Windows, p.Lots = windowRules(c.Windows), c.Lots
	if c.Slots != nil {
		p.Slots = c.Slots.millis()
	}
	p.Outflow = fairness.Outflow(c.Outflow)
	p.Notice, p.Claim, p.Grace, p.Session = c.Notice.millis(), c.Claim.millis(), c.Grace.millis(), c.Session.millis()
	if c.Extend != nil {
		p.Extend = c.Extend.millis()
	}
	problems := append(c.problems(), invalid.From(p.Problems())...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &p, nil
}

func windowRules(rules []WindowRule) []fairness.WindowRule {
	list := make([]fairness.WindowRule, len(rules))
	for i, w := range rules {
		if w.From != nil {
			list[i].From = millis.Of(*w.From)
		}
		list[i].Length = w.Length.millis()
	}
	return list
}

func closing(t *time.Time) fairness.Time {
	if t == nil {
		return fairness.Never
	}
	return millis.Of(*t)
}

// configOf returns the configuration that corresponds to a policy with its amendments.
func configOf(slug, title string, p *fairness.Policy, s *Snapshot) Config {
	opens, starts := millis.Time(p.Opens), millis.Time(p.Starts)
	notice, claim, grace, session := duration(p.Notice), duration(p.Claim), duration(p.Grace), duration(p.Session)
	c := Config{
		Slug: slug, Title: title, Opens: &opens, Starts: &starts, Closes: s.Closes, Beacon: fairness.NoBeacon,
		Notice: &notice, Outflow: Outflow(s.Outflow), Claim: &claim, Grace: &grace, Session: &session,
	}
	if b := p.Beacon; b != nil {
		margin := duration(b.Margin)
		c.Beacon, c.Margin, c.Quorum = evidence.ChainName(b.Chain), &margin, &p.Quorum
	}
	if p.Extend > 0 {
		extend := duration(p.Extend)
		c.Extend = &extend
	}
	c.Party, c.Seats = p.Party, s.Seats
	if p.Slots > 0 {
		slots := duration(p.Slots)
		c.Slots = &slots
	}
	c.Methods, c.Lots = p.Methods, p.Lots
	for _, l := range p.Lanes {
		c.Lanes = append(c.Lanes, LaneRule(l))
	}
	for _, r := range s.schedule.Rules() {
		from := millis.Time(r.From)
		c.Windows = append(c.Windows, WindowRule{From: &from, Length: duration(r.Length)})
	}
	return c
}

func duration(m fairness.Millis) Duration { return Duration(time.Duration(m) * time.Millisecond) }
