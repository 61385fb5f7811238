package sites

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
	"github.com/proofline/proofline/web/console/format"
)

// siteForm holds rules of the usual form: paths that wait for one room.
type siteForm struct {
	Hosts         string // hosts, one per line
	Room          string // URL
	Scope         string // scopeAll or scopePaths
	Paths         string // paths that wait, one per line
	Exceptions    string // paths that never wait, one per line
	Mode          string
	From          string // start and end in mode "scheduled"
	Until         string
	Failure       string // retry-page, page or fail-open-after
	FailOpenAfter string // length such as "5 min"
}

// Scopes of the rules, and the failure mode with a length.
const (
	scopeAll      = "all"
	scopePaths    = "paths"
	failOpenAfter = "fail-open-after"
)

func readSiteForm(v url.Values) siteForm {
	text := func(name string) string { return format.Clean(v.Get(name)) }
	return siteForm{
		Hosts: text("hosts"), Room: text("room"),
		Scope: text("scope"), Paths: text("paths"), Exceptions: text("exceptions"), Mode: text("mode"),
		From: format.ReadMoment(text("from")), Until: format.ReadMoment(text("until")),
		Failure: text("failure"), FailOpenAfter: text("fail_open_after"),
	}
}

// newSiteForm returns the form of a new site. The site's hosts are those of the room's targets.
func newSiteForm(address string, targets []string) siteForm {
	f := siteForm{Room: address, Scope: scopePaths, Mode: string(rules.Always), Failure: failOpenAfter,
		FailOpenAfter: "5 min"}
	f.Hosts = strings.Join(lined(strings.Join(targets, "\n"), asHost), "\n")
	return f
}

// lined returns the distinct non-empty lines of a field.
func lined(text string, clean func(string) string) (list []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line = clean(strings.TrimSpace(line)); line != "" && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return list
}

// asHost returns the host of a pasted URL.
func asHost(line string) string {
	if u, err := url.Parse(line); err == nil && u.Host != "" {
		line = u.Hostname()
	}
	return strings.ToLower(strings.TrimSuffix(line, "/"))
}

// asPath returns the path of a pasted URL.
func asPath(line string) string {
	if u, err := url.Parse(line); err == nil && u.Host != "" {
		line = "/" + strings.TrimPrefix(u.Path, "/")
	}
	return line
}

// siteDocument is a rules document, with its members in reading order.
type siteDocument struct {
	Version int                   `json:"version"`
	Hosts   []string              `json:"hosts,omitempty"`
	Rooms   map[string]rules.Room `json:"rooms"`
	Rules   []rules.Rule          `json:"rules"`
}

// drafted is a document made from a form, with the form field that each member comes from.
type drafted struct {
	text   string
	fields map[string]string // fields of the form by members of the document
	spoken map[string]string // the typed text by members of the document
}

// document returns the document for the form. The error is a *[invalid.Error] with the fields of
// the form.
func (f *siteForm) document() (drafted, error) {
	d := drafted{fields: map[string]string{}, spoken: map[string]string{}}
	var wrong invalid.List
	add := func(isWrong bool, field, detail string) {
		if isWrong {
			wrong = append(wrong, invalid.Problem{Field: field, Detail: detail})
		}
	}
	hosts := lined(f.Hosts, asHost)
	for i, host := range hosts {
		d.says(fmt.Sprintf("hosts[%d]", i), "hosts", host)
	}
	add(len(hosts) == 0, "hosts", "must name the host of your site, such as shop.example.com")
	add(f.Room == "", "room", "must be one of your rooms")
	r := rules.Room{URL: f.Room, Mode: rules.Mode(f.Mode), Failure: rules.Failure(f.Failure)}
	if r.Mode == rules.Always {
		r.Mode = ""
	}
	if r.Mode == rules.Scheduled {
		var err error
		r.From, r.Until, err = f.times()
		add(err != nil, "from", "must be a time, or empty")
	}
	if f.Failure == failOpenAfter {
		length, ok := compact(f.FailOpenAfter)
		add(!ok, "fail_open_after", "must be a length of whole seconds up to 24 hours, such as 5 min")
		r.Failure = rules.Failure(failOpenAfter + " " + length)
	}
	name := roomName(f.Room)
	for member, field := range map[string]string{
		"url": "room", "mode": "mode", "from": "from", "until": "until", "failure": "failure",
	} {
		d.fields["rooms."+name+"."+member] = field
	}
	passing, waiting := lined(f.Exceptions, asPath), lined(f.Paths, asPath)
	switch {
	case f.Scope == scopeAll:
		waiting = []string{"/"}
	case len(waiting) == 0:
		add(true, "paths", "must name what waits, such as /tickets")
	}
	list := d.rules("exceptions", nil, passing, "bypass")
	list = d.rules("paths", list, waiting, "queue "+name)
	for _, path := range waiting {
		add(slices.Contains(passing, path), "exceptions", path+" cannot both wait and never wait")
	}
	if len(wrong) > 0 {
		return d, &invalid.Error{Problems: wrong}
	}
	d.text = writeDocument(siteDocument{rules.Version, hosts, map[string]rules.Room{name: r}, list})
	return d, nil
}

// says records the form field of a member of the document.
func (d *drafted) says(member, field, typed string) {
	d.fields[member], d.spoken[member] = field, typed
}

// rules adds a rule for each path.
func (d *drafted) rules(field string, list []rules.Rule, paths []string, action string) []rules.Rule {
	verb := "wait"
	if action == "bypass" {
		verb = "pass"
	}
	for _, path := range paths {
		d.says(fmt.Sprintf("rules[%d]", len(list)), field, path)
		name := verb + " " + path
		if len(name) > 90 {
			name = fmt.Sprintf("%s %d", verb, len(list)+1)
		}
		list = append(list, rules.Rule{Name: name, When: rules.When{Path: &rules.Test{Prefix: &path}}, Action: action})
	}
	return list
}

// times returns the start and the end of the schedule.
func (f *siteForm) times() (from, until *time.Time, err error) {
	for _, field := range []struct {
		text string
		to   **time.Time
	}{{f.From, &from}, {f.Until, &until}} {
		if field.text == "" {
			continue
		}
		t, ok := format.ParseMoment(field.text)
		if !ok {
			return nil, nil, fmt.Errorf("not a time: %s", field.text)
		}
		*field.to = &t
	}
	return from, until, nil
}

// roomName returns the name of a room in the rules: its slug.
func roomName(address string) string { return address[strings.LastIndexByte(address, '/')+1:] }

// compact writes a length as in rules: 90s, 5m, 2h.
func compact(text string) (string, bool) {
	d, ok := format.ReadLength(text)
	switch {
	case !ok, d <= 0, d > 24*time.Hour, d%time.Second != 0:
		return "", false
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour), true
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute), true
	}
	return fmt.Sprintf("%ds", d/time.Second), true
}

// writeDocument writes a document with one rule per line.
func writeDocument(d siteDocument) string {
	one := func(v any) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // strings, numbers and times can be encoded
		return jsontext.Spaced(strings.TrimSpace(b.String()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "{\n  \"version\": %d,\n", d.Version)
	if len(d.Hosts) > 0 {
		fmt.Fprintf(&b, "  \"hosts\": %s,\n", one(d.Hosts))
	}
	b.WriteString("  \"rooms\": {")
	for name, r := range d.Rooms {
		fmt.Fprintf(&b, "\n    %s: %s", one(name), one(r))
	}
	b.WriteString("\n  },\n  \"rules\": [")
	for i, r := range d.Rules {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString("\n    " + one(r))
	}
	b.WriteString("\n  ]\n}\n")
	return b.String()
}

// place replaces the document's members in problems with the form's fields.
func (d *drafted) place(problems invalid.List) (list invalid.List) {
	for _, p := range problems {
		for field := p.Field; field != ""; field = parent(field) {
			to, ok := d.fields[field]
			if !ok {
				continue
			}
			if typed := d.spoken[field]; typed != "" {
				p.Detail = typed + " " + p.Detail
			}
			p.Field = to
			break
		}
		list = append(list, p)
	}
	return list
}

// siteFormOf returns the form for a document, and whether the form can show all of it.
func siteFormOf(document []byte) (siteForm, bool) {
	s, err := rules.Parse(document)
	if err != nil || len(s.Rooms) != 1 || len(s.Rules) == 0 {
		return siteForm{}, false
	}
	f := siteForm{Hosts: strings.Join(s.Hosts, "\n"), Scope: scopePaths}
	for _, r := range s.Rooms {
		f.take(r)
	}
	var passing, waiting []string
	for _, r := range s.Rules {
		switch {
		case r.When.Path == nil || r.When.Path.Prefix == nil:
			return siteForm{}, false
		case r.Action == "bypass":
			passing = append(passing, *r.When.Path.Prefix)
		default:
			waiting = append(waiting, *r.When.Path.Prefix)
		}
	}
	if slices.Equal(waiting, []string{"/"}) {
		f.Scope, waiting = scopeAll, nil
	}
	f.Exceptions, f.Paths = strings.Join(passing, "\n"), strings.Join(waiting, "\n")
	again, err := f.document()
	if err != nil {
		return siteForm{}, false
	}
	made, err := rules.Parse([]byte(again.text))
	return f, err == nil && isSame(s, made)
}

// take fills in the room.
func (f *siteForm) take(r rules.Room) {
	f.Room, f.Mode, f.Failure = r.URL, string(r.Mode), string(r.Failure)
	if d, ok := r.Failure.FailOpenAfter(); ok {
		f.Failure, f.FailOpenAfter = failOpenAfter, format.Duration(d)
	}
	if r.From != nil {
		f.From = r.From.UTC().Format(format.MomentLayout)
	}
	if r.Until != nil {
		f.Until = r.Until.UTC().Format(format.MomentLayout)
	}
}

// isSame reports whether two documents are equivalent.
func isSame(a, b *rules.Site) bool {
	one, _ := json.Marshal(a) // no error: the values were read from JSON
	other, _ := json.Marshal(b)
	return bytes.Equal(one, other)
}
