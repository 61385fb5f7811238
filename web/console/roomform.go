package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// roomForm is a room's configuration as it is typed: what cannot be read stays
// as it is, so that the form shows it again. Moments are as in the
// configuration's JSON, lengths in words.
type roomForm struct {
	Slug, Title, Host      string
	Opens, Starts, Closes  string
	Windows                []windowField
	PerMinute, MaxActive   string
	Claim, Session, Margin string
	Beacon, Quorum         string
	MaxWaiting             string
	Targets                string // one a line
	SignedReturn           bool
	TimeZone               string
}

// windowField is one row of the windows. The first one begins when the room opens.
type windowField struct{ From, Length string }

// readRoomForm takes what was sent.
func readRoomForm(v url.Values) roomForm {
	get := func(name string) string { return cleanText(v.Get(name)) }
	f := roomForm{
		Slug: get("slug"), Title: get("title"), Host: get("host"),
		Opens: readMoment(get("opens")), Starts: readMoment(get("starts")), Closes: readMoment(get("closes")),
		PerMinute: get("outflow.per_minute"), MaxActive: get("outflow.max_active"),
		Claim: get("claim"), Session: get("session"), Margin: get("margin"), Beacon: get("beacon"), Quorum: get("quorum"),
		MaxWaiting: get("max_waiting"), Targets: get("targets"), SignedReturn: get("signed_return") == "1", TimeZone: get("time_zone"),
	}
	for i := 0; v.Has(lengthName(i)) && i <= fairness.MaxRules; i++ {
		f.Windows = append(f.Windows, windowField{readMoment(get(fmt.Sprintf("windows[%d].from", i))), get(lengthName(i))})
	}
	return f
}

func lengthName(i int) string { return fmt.Sprintf("windows[%d].length", i) }

// slugOf is a slug that a title suggests, empty for none. The editor's script
// proposes the same (web/ui/src/console/slug.ts).
func slugOf(title string) string {
	const most = 63
	var b strings.Builder
	for _, r := range strings.ReplaceAll(strings.ToLower(norm.NFKD.String(title)), "\u00df", "ss") {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r):
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	slug := b.String()
	return strings.TrimRight(slug[:min(len(slug), most)], "-")
}

// cleanText leaves out what no text of a room may have.
func cleanText(s string) string {
	return strings.ToValidUTF8(strings.NewReplacer("\x00", "\uFFFD", "\r\n", "\n").Replace(strings.TrimSpace(s)), "\uFFFD")
}

// momentForms are what browsers send for a moment: the script as in RFC 3339,
// and without it the field itself, which is in UTC.
var momentForms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

const (
	momentForm = "2006-01-02T15:04:05.999Z07:00"
	fieldForm  = "2006-01-02T15:04:05.999" // of a datetime-local
)

// readMoment returns a moment as in the configuration, or the text as it is.
func readMoment(text string) string {
	for _, form := range momentForms {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC().Format(momentForm)
		}
	}
	return text
}

// momentField writes a moment for a field, in UTC.
func momentField(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(fieldForm)
}

// momentStep is the step of a field with a moment: seconds are enough, unless
// the moment is finer.
func momentStep(text string) string {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil && t.Nanosecond() != 0 {
		return "0.001"
	}
	return "1"
}

// lengthForm is a length in words or as Go writes it: "1 min 30 s", "1m30s",
// "2 hours".
var (
	lengthForm = regexp.MustCompile(`^(?:\s*[0-9]{1,9}(?:\.[0-9]{1,3})?\s*[a-z]+)+\s*$`)
	lengthPart = regexp.MustCompile(`([0-9.]+)\s*([a-z]+)`)
)

var lengthUnits = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// readLength reads a length in words, of whole milliseconds.
func readLength(text string) (time.Duration, bool) {
	text = strings.ToLower(text)
	if !lengthForm.MatchString(text) {
		return 0, false
	}
	var sum float64
	for _, part := range lengthPart.FindAllStringSubmatch(text, -1) {
		unit, ok := lengthUnits[part[2]]
		if !ok {
			unit, ok = lengthUnits[strings.TrimSuffix(part[2], "s")]
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if !ok || err != nil {
			return 0, false
		}
		sum += n * float64(unit.Milliseconds())
	}
	if sum >= float64(math.MaxInt64/int64(time.Millisecond)) {
		return 0, false
	}
	return time.Duration(math.Round(sum)) * time.Millisecond, true
}

// jsonMoment is a moment as a member of the configuration; nil for none.
func jsonMoment(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// jsonLength is a length as a member of the configuration.
func jsonLength(text string) any {
	if d, ok := readLength(text); ok {
		return room.Duration(d)
	}
	return jsonMoment(text)
}

var wholeNumber = regexp.MustCompile(`^[0-9]{1,20}$`)

// jsonNumber is a number as a member of the configuration, with or without
// commas and spaces between its digits.
func jsonNumber(text string) any {
	digits := strings.NewReplacer(",", "", " ", "", "\u202f", "", "\u00a0", "").Replace(text)
	if !wholeNumber.MatchString(digits) {
		return jsonMoment(text)
	}
	return json.Number(cmp.Or(strings.TrimLeft(digits, "0"), "0"))
}

// config returns the configuration on top of another one, whose members that
// the form does not have stay, such as the brand.
func (f *roomForm) config(base json.RawMessage) (json.RawMessage, error) {
	members := map[string]any{}
	kept := map[string]json.RawMessage{}
	_ = json.Unmarshal(base, &kept) // of none there is nothing to keep
	for name, value := range kept {
		members[name] = value
	}
	set := func(name string, value any) {
		if value == nil {
			delete(members, name)
			return
		}
		members[name] = value
	}
	set("slug", f.Slug)
	set("title", jsonMoment(f.Title))
	set("opens", jsonMoment(f.Opens))
	set("starts", jsonMoment(f.Starts))
	set("closes", jsonMoment(f.Closes))
	set("claim", jsonLength(f.Claim))
	set("session", jsonLength(f.Session))
	set("margin", jsonLength(f.Margin))
	set("beacon", jsonMoment(f.Beacon))
	set("quorum", jsonNumber(f.Quorum))
	set("max_waiting", jsonNumber(f.MaxWaiting))
	set("targets", jsonTargets(f.Targets))
	set("signed_return", jsonFlag(f.SignedReturn))
	set("time_zone", jsonMoment(f.TimeZone))
	set("windows", jsonWindows(f.Windows))
	set("outflow", jsonOutflow(f.PerMinute, f.MaxActive))
	return json.Marshal(members)
}

// jsonFlag is true or nothing.
func jsonFlag(is bool) any {
	if !is {
		return nil
	}
	return true
}

func jsonTargets(text string) any {
	list := targetLines(text)
	if len(list) == 0 {
		return nil
	}
	return list
}

// targetLines are the lines that are not empty.
func targetLines(text string) []string {
	list := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

func jsonWindows(rows []windowField) any {
	if len(rows) == 0 {
		return nil
	}
	list := []map[string]any{}
	for i, row := range rows {
		rule := map[string]any{"length": jsonLength(row.Length)}
		if i > 0 {
			rule["from"] = jsonMoment(row.From)
		}
		list = append(list, rule)
	}
	return list
}

func jsonOutflow(perMinute, maxActive string) any {
	members := map[string]any{}
	if v := jsonNumber(perMinute); v != nil {
		members["per_minute"] = v
	}
	if v := jsonNumber(maxActive); v != nil {
		members["max_active"] = v
	}
	if len(members) == 0 {
		return nil
	}
	return members
}

// storedText is the text of a member that should be a text or a number, in
// the way it is typed.
func storedText(raw json.RawMessage) string {
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		if text == nil {
			return ""
		}
		return *text
	}
	return string(raw)
}

// storedLength is the text of a member that should be a length, in words.
func storedLength(raw json.RawMessage) string {
	text := storedText(raw)
	if d, err := time.ParseDuration(text); err == nil && d >= 0 && d%time.Millisecond == 0 {
		return duration(d)
	}
	return text
}

// newRoomForm shows a stored configuration, finished or not.
func newRoomForm(config json.RawMessage, host string) roomForm {
	var c map[string]json.RawMessage
	_ = json.Unmarshal(config, &c) // drafts are JSON objects
	var outflow map[string]json.RawMessage
	_ = json.Unmarshal(c["outflow"], &outflow) // what is no object is shown by its problem
	f := roomForm{
		Slug: storedText(c["slug"]), Title: storedText(c["title"]), Host: host,
		Opens: storedText(c["opens"]), Starts: storedText(c["starts"]), Closes: storedText(c["closes"]),
		PerMinute: storedText(outflow["per_minute"]), MaxActive: storedText(outflow["max_active"]),
		Claim: storedLength(c["claim"]), Session: storedLength(c["session"]), Margin: storedLength(c["margin"]),
		Beacon: storedText(c["beacon"]), Quorum: storedText(c["quorum"]), MaxWaiting: storedText(c["max_waiting"]), TimeZone: storedText(c["time_zone"]),
	}
	_ = json.Unmarshal(c["signed_return"], &f.SignedReturn) // what is no flag is shown by its problem
	var targets []string
	if json.Unmarshal(c["targets"], &targets) == nil {
		f.Targets = strings.Join(targets, "\n")
	}
	var windows []map[string]json.RawMessage
	_ = json.Unmarshal(c["windows"], &windows) // as above
	for _, w := range windows {
		f.Windows = append(f.Windows, windowField{storedText(w["from"]), storedLength(w["length"])})
	}
	if len(f.Windows) > 0 {
		f.Opens = cmp.Or(f.Opens, f.Windows[0].From)
		f.Windows[0].From = ""
	}
	return f
}

// addWindow adds a row after the others: from the start on, or after ten
// windows of the last one.
func (f *roomForm) addWindow() {
	if len(f.Windows) == 0 {
		f.Windows = []windowField{{Length: "1 min"}}
		return
	}
	last := f.Windows[len(f.Windows)-1]
	from, known := parseMoment(cmp.Or(last.From, f.Opens))
	next := windowField{Length: last.Length}
	if starts, ok := parseMoment(f.Starts); ok && known && starts.After(from) {
		next.From = f.Starts
	} else if length, ok := readLength(last.Length); ok && known {
		next.From = from.Add(10 * length).Format(momentForm)
	}
	f.Windows = append(f.Windows, next)
}

// removeWindow removes a row, but never the last one that there is.
func (f *roomForm) removeWindow(i int) {
	if i < 0 || i >= len(f.Windows) || len(f.Windows) == 1 {
		return
	}
	f.Windows = slices.Delete(f.Windows, i, i+1)
	f.Windows[0].From = ""
}

func parseMoment(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UTC(), err == nil
}

// schedule returns what an outline is made of, as far as it can be read; no
// rules when it cannot.
func (f *roomForm) schedule() (starts, closes fairness.Time, rules []fairness.WindowRule) {
	moment := func(text string, without fairness.Time) fairness.Time {
		if t, ok := parseMoment(text); ok {
			return fairness.Time(t.UnixMilli())
		}
		if text != "" {
			return -1 // no room's
		}
		return without
	}
	opens := moment(f.Opens, -1)
	starts, closes = moment(f.Starts, opens), moment(f.Closes, fairness.Never)
	for i, w := range f.Windows {
		from := opens
		if i > 0 {
			from = moment(w.From, -1)
		}
		length, _ := readLength(w.Length)
		rules = append(rules, fairness.WindowRule{From: from, Length: fairness.Millis(length.Milliseconds())})
	}
	if opens < 0 {
		return 0, 0, nil
	}
	return starts, closes, rules
}

// outline says what the form's windows mean.
func (f *roomForm) outline() []string { return outline(f.schedule()) }
