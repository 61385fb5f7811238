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
	"github.com/proofline/proofline/room/setting"
)

// roomForm is a room's configuration as it is typed. Malformed values stay as they are, so that the form shows
// them again. Times are as in the configuration's JSON, durations in words.
type roomForm struct {
	Host    string
	Windows []windowField
	values  map[string]string // by the names of settings
}

// Value returns what is typed for a setting, such as "outflow.per_minute".
func (f roomForm) Value(name string) string { return f.values[name] }

func (f *roomForm) set(name, text string) {
	if f.values == nil {
		f.values = map[string]string{}
	}
	f.values[name] = text
}

// formSettings returns the settings that forms have a field for.
func formSettings() []setting.Setting {
	return slices.DeleteFunc(setting.All(), func(s setting.Setting) bool { return s.Form.Group == "" })
}

// windowField is one row of the windows. The first one begins when the room opens.
type windowField struct{ From, Length string }

// readRoomForm reads the form that was sent.
func readRoomForm(v url.Values) roomForm {
	f := roomForm{Host: cleanText(v.Get("host"))}
	for _, s := range formSettings() {
		f.set(s.Name, cleanTyped(s.Kind, v.Get(s.Name)))
	}
	for i := 0; v.Has(lengthName(i)) && i <= fairness.MaxRules; i++ {
		from := readMoment(cleanText(v.Get(fmt.Sprintf("windows[%d].from", i))))
		f.Windows = append(f.Windows, windowField{from, cleanText(v.Get(lengthName(i)))})
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

// config returns the configuration on top of another one. Members that the form does not have stay, such as
// the brand.
func (f *roomForm) config(base json.RawMessage) (json.RawMessage, error) {
	members := map[string]any{}
	kept := map[string]json.RawMessage{}
	_ = json.Unmarshal(base, &kept) // of none there is nothing to keep
	for name, value := range kept {
		members[name] = value
	}
	fields := formSettings()
	for _, s := range fields {
		outer, _, _ := strings.Cut(s.Name, ".")
		delete(members, outer)
	}
	for _, s := range fields {
		if value := jsonTyped(s.Kind, f.Value(s.Name)); value != nil {
			setting.Put(members, s.Name, value)
		}
	}
	delete(members, "windows")
	if rules := jsonWindows(f.Windows); rules != nil {
		members["windows"] = rules
	}
	return json.Marshal(members)
}

// jsonFlag is true or nothing.
func jsonFlag(is bool) any {
	if !is {
		return nil
	}
	return true
}

// textLines returns the lines that are not empty.
func textLines(text string) []string {
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
	f := roomForm{Host: host}
	for _, s := range formSettings() {
		f.set(s.Name, typedText(s.Kind, setting.Get(config, s.Name)))
	}
	var windows []map[string]json.RawMessage
	_ = json.Unmarshal(setting.Get(config, "windows"), &windows) // a value that is no list is shown by its problem
	for _, w := range windows {
		f.Windows = append(f.Windows, windowField{storedText(w["from"]), storedLength(w["length"])})
	}
	if len(f.Windows) > 0 {
		f.set("opens", cmp.Or(f.Value("opens"), f.Windows[0].From))
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
	from, known := parseMoment(cmp.Or(last.From, f.Value("opens")))
	next := windowField{Length: last.Length}
	if starts, ok := parseMoment(f.Value("starts")); ok && known && starts.After(from) {
		next.From = f.Value("starts")
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
	opens := moment(f.Value("opens"), -1)
	starts, closes = moment(f.Value("starts"), opens), moment(f.Value("closes"), fairness.Never)
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

// line is one member of a form in words.
type line struct{ label, value string }

// lines returns the values of settings in words, to compare two forms.
func (f *roomForm) lines(settings []setting.Setting) []line {
	var list []line
	for _, s := range settings {
		list = append(list, line{s.Label, typedWords(s.Kind, f.Value(s.Name))})
	}
	return list
}

// windowLines returns the windows in words. first names the time at which the first one begins; empty: its own.
func (f *roomForm) windowLines(first string) string {
	windows := make([]string, len(f.Windows))
	for i, w := range f.Windows {
		from := momentLine(w.From)
		if i == 0 && first != "" {
			from = first
		}
		windows[i] = fmt.Sprintf("from %s: %s", from, w.Length)
	}
	return strings.Join(windows, "\n")
}
