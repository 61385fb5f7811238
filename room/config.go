package room

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
)

// Defaults of a configuration.
const (
	DefaultClaim     = 5 * time.Minute
	DefaultSession   = 15 * time.Minute
	DefaultWindow    = time.Minute
	DefaultPerMinute = 60
	// DefaultMaxWaiting is the longest line that the benchmarks measure. Without a limit only the server's
	// memory would stop a flood of joins.
	DefaultMaxWaiting = 1_000_000
)

const maxTitle = 200 // characters

// Duration is a time.Duration that JSON writes as "1m30s".
type Duration time.Duration

// MarshalText formats the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses what time.ParseDuration accepts, in whole milliseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v%time.Millisecond != 0 {
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
	Outflow Outflow      `json:"outflow"`
	Claim   *Duration    `json:"claim"`   // default 5m
	Session *Duration    `json:"session"` // default 15m
	// Beacon is "none" or the name of a chain that the server knows, such as
	// "drand:quicknet". Default: the server's first chain, if it has one.
	Beacon string `json:"beacon"`
	// Margin is the minimum time between a freeze and its beacon round.
	Margin *Duration `json:"margin,omitempty"` // default 3s, with a beacon
	// Quorum is how many of the server's witnesses should cosign each freeze; 0: no witnesses. Default: more
	// than half, with a beacon.
	Quorum *uint32 `json:"quorum,omitempty"`
	Settings
}

// WindowRule opens windows of one length from a given time on.
type WindowRule struct {
	From   *time.Time `json:"from"` // default of the first: opens
	Length Duration   `json:"length"`
}

// Outflow is the pace at which visitors are admitted.
type Outflow struct {
	PerMinute uint32 `json:"per_minute"` // default 60
	MaxActive uint32 `json:"max_active"` // 0: no limit
}

// ParseConfig parses a room's JSON. The error is an [*invalid.Error] that lists every field that is unknown or
// malformed, and problems of the others that do not depend on the time.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	d := newFields(data, "slug", "title", "opens", "starts", "closes", "windows", "outflow", "claim", "session",
		"beacon", "margin", "quorum", "targets", "signed_return", "brand", "max_waiting", "time_zone")
	read(d, "slug", &c.Slug, wantText)
	read(d, "title", &c.Title, wantText)
	read(d, "opens", &c.Opens, wantTime)
	read(d, "starts", &c.Starts, wantTime)
	read(d, "closes", &c.Closes, wantTime)
	read(d, "claim", &c.Claim, wantDuration)
	read(d, "session", &c.Session, wantDuration)
	read(d, "beacon", &c.Beacon, wantBeacon)
	read(d, "margin", &c.Margin, wantDuration)
	read(d, "quorum", &c.Quorum, wantCount)
	d.windows(&c.Windows)
	if d.has("outflow") {
		in := d.outflow()
		read(in, "per_minute", &c.Outflow.PerMinute, wantRate)
		read(in, "max_active", &c.Outflow.MaxActive, wantCount)
		if in.has("per_minute") && c.Outflow.PerMinute == 0 {
			in.problem("per_minute", wantRate) // only a missing value gets the default
		}
	}
	c.MaxWaiting = DefaultMaxWaiting
	c.Settings = d.settings().on(c.Settings)
	if d.raw != nil && d.err() != nil { // if there is no problem so far, creating the room reports those below
		d.add(invalid.Problems(c.check(time.UnixMilli(0))))
	}
	return c, d.err()
}

const (
	wantText     = "must be a text"
	wantTime     = "must be an RFC 3339 time such as 2030-05-01T12:00:00Z"
	wantDuration = `must be a duration such as "30s"`
	wantBeacon   = `must be "none", or a drand chain such as "drand:quicknet"`
	wantCount    = "must be a whole number from 0 to 4294967295"
)

var wantRate = fmt.Sprintf("must be a whole number from 1 to %d", fairness.MaxRate)

// fields reads the members of a JSON object one by one, so that all problems are found, not only the first.
type fields struct {
	raw      map[string]json.RawMessage
	prefix   string
	problems *invalid.List
}

func newFields(data []byte, known ...string) *fields {
	d := &fields{problems: &invalid.List{}}
	if wrong := (jsontext.Form{Depth: maxNested}).Check(data); wrong != nil {
		d.problem(wrong.Field, wrong.Detail)
	}
	d.object(data, known)
	return d
}

func (d *fields) object(data []byte, known []string) {
	if err := json.Unmarshal(data, &d.raw); err != nil || d.raw == nil {
		d.raw = nil
		detail := "must be a JSON object"
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			detail += fmt.Sprintf("; after %d bytes: %v", syntax.Offset, syntax)
		}
		d.problem("", detail)
	}
	for _, name := range slices.Sorted(maps.Keys(d.raw)) {
		if !slices.Contains(known, name) && len(*d.problems) < invalid.Max {
			d.problem(name, "is not known; known are "+strings.Join(known, ", "))
		}
	}
}

func (d *fields) problem(name, detail string) {
	d.add(invalid.List{{Field: strings.Trim(d.prefix+name, "."), Detail: detail}})
}

// maxNested is the maximum nesting of lists and objects in a room's JSON.
const maxNested = 32

// add adds problems, at most one per field. A field that could not be parsed gets no further problems.
func (d *fields) add(problems invalid.List) {
	for _, p := range problems {
		if len(*d.problems) >= invalid.Max {
			return
		}
		known := func(k invalid.Problem) bool { return p.Field == k.Field || strings.HasPrefix(p.Field, k.Field+".") }
		if !slices.ContainsFunc(*d.problems, known) {
			*d.problems = append(*d.problems, p)
		}
	}
}

// has reports whether a member is present and not null.
func (d *fields) has(name string) bool {
	raw, ok := d.raw[name]
	return ok && !bytes.Equal(raw, []byte("null"))
}

// read decodes a member if it is present. It leaves into alone if the member is malformed.
func read[T any](d *fields, name string, into *T, want string) {
	if !d.has(name) {
		return
	}
	var value T
	if json.Unmarshal(d.raw[name], &value) != nil {
		d.problem(name, want)
		return
	}
	*into = value
}

// inner returns the fields of a member that is itself an object.
func (d *fields) inner(name string, raw json.RawMessage, known ...string) *fields {
	in := &fields{prefix: d.prefix + name + ".", problems: d.problems}
	in.object(raw, known)
	return in
}

func (d *fields) windows(into *[]WindowRule) {
	var rules []json.RawMessage
	read(d, "windows", &rules, `must be a list of {"from": time, "length": duration}`)
	for i, raw := range rules {
		var w WindowRule
		in := d.inner(fmt.Sprintf("windows[%d]", i), raw, "from", "length")
		read(in, "from", &w.From, wantTime)
		read(in, "length", &w.Length, wantDuration)
		*into = append(*into, w)
	}
}

// outflow returns the members of the outflow.
func (d *fields) outflow() *fields {
	return d.inner("outflow", d.raw["outflow"], "per_minute", "max_active")
}

func (d *fields) err() error {
	return d.problems.Err()
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
	if c.Outflow.PerMinute == 0 {
		c.Outflow.PerMinute = DefaultPerMinute
	}
	if c.Claim == nil {
		d := Duration(DefaultClaim)
		c.Claim = &d
	}
	if c.Session == nil {
		d := Duration(DefaultSession)
		c.Session = &d
	}
	c.Title = c.title()
	return c
}

func (c Config) title() string { return cmp.Or(c.Title, c.Slug) }

// defaultWindows returns one window from opening to start, whose arrivals are all equal, and after it first
// come, first served by the minute.
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

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// problems lists what is invalid apart from the policy.
func (c Config) problems() invalid.List {
	var list invalid.List
	if !slugForm.MatchString(c.Slug) {
		list.Add("slug", "must be 1 to 63 of a-z, 0-9 and '-', not beginning or ending with '-'")
	}
	list = append(list, textProblems("title", c.Title, maxTitle)...)
	if c.Beacon != "" && c.Beacon != fairness.NoBeacon && !strings.HasPrefix(c.Beacon, chainPrefix) {
		list.Add("beacon", wantBeacon)
	}
	for i, w := range c.Windows {
		if i > 0 && w.From == nil {
			list.Add(fmt.Sprintf("windows[%d].from", i), "is needed for every rule but the first")
		}
	}
	return append(list, c.Settings.problems()...)
}

// textProblems checks a text for users, which the database must be able to store: it does not accept NUL.
func textProblems(field, text string, most int) invalid.List {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > most || strings.ContainsRune(text, 0) {
		return invalid.List{{Field: field,
			Detail: fmt.Sprintf("must be at most %d characters of UTF-8, none of them NUL", most)}}
	}
	return nil
}

// policy returns the policy to publish: identity comes from id, the rest from the configuration.
func (c Config) policy(id fairness.Policy) (*fairness.Policy, error) {
	p := id
	p.Lanes = []fairness.Lane{fairness.General}
	p.Opens, p.Starts, p.Closes = fromTime(*c.Opens), fromTime(*c.Starts), closing(c.Closes)
	p.Windows = windowRules(c.Windows)
	p.Outflow = fairness.Outflow(c.Outflow)
	p.Claim, p.Session = c.Claim.millis(), c.Session.millis()
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
			list[i].From = fromTime(*w.From)
		}
		list[i].Length = w.Length.millis()
	}
	return list
}

func closing(t *time.Time) fairness.Time {
	if t == nil {
		return fairness.Never
	}
	return fromTime(*t)
}

// fromTime converts a time to the transcript's milliseconds.
func fromTime(t time.Time) fairness.Time { return fairness.Time(t.UnixMilli()) }

// timeOf converts the transcript's milliseconds to a time in UTC.
func timeOf(t fairness.Time) time.Time { return time.UnixMilli(int64(t)).UTC() }

// configOf returns the configuration that a policy with its amendments corresponds to.
func configOf(slug, title string, p *fairness.Policy, s *Snapshot) Config {
	opens, starts := timeOf(p.Opens), timeOf(p.Starts)
	claim, session := duration(p.Claim), duration(p.Session)
	c := Config{
		Slug: slug, Title: title, Opens: &opens, Starts: &starts, Closes: s.Closes, Beacon: fairness.NoBeacon,
		Outflow: Outflow(s.Outflow), Claim: &claim, Session: &session,
	}
	if b := p.Beacon; b != nil {
		margin := duration(b.Margin)
		c.Beacon, c.Margin, c.Quorum = chainName(b.Chain), &margin, &p.Quorum
	}
	for _, r := range s.schedule.Rules() {
		from := timeOf(r.From)
		c.Windows = append(c.Windows, WindowRule{From: &from, Length: duration(r.Length)})
	}
	return c
}

func duration(m fairness.Millis) Duration { return Duration(time.Duration(m) * time.Millisecond) }
