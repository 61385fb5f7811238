package rooms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
)

// roomForm is a room's configuration as typed. Malformed values are kept, so that the form shows them again. Times
// are as in the configuration's JSON, durations in words.
type roomForm struct {
	Host    string
	Windows []windowField
	AsText  bool              // the methods are edited as text, not in rows
	values  map[string]string // typed values by setting name
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
	f := roomForm{Host: format.Clean(v.Get("host"))}
	for _, s := range formSettings() {
		f.set(s.Name, cleanTyped(s.Kind, v.Get(s.Name)))
	}
	if f.AsText = v.Has("methods"); !f.AsText {
		f.set("methods", readMethodRows(v))
	}
	for i := 0; v.Has(lengthName(i)) && i <= fairness.MaxRules; i++ {
		from := format.ReadMoment(format.Clean(v.Get(fmt.Sprintf("windows[%d].from", i))))
		f.Windows = append(f.Windows, windowField{from, format.Clean(v.Get(lengthName(i)))})
	}
	return f
}

func lengthName(i int) string { return fmt.Sprintf("windows[%d].length", i) }

// jsonMoment returns the value of a moment in the configuration; nil: none.
func jsonMoment(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// jsonLength returns the value of a length in the configuration.
func jsonLength(text string) any {
	if d, ok := format.ReadLength(text); ok {
		return room.Duration(d)
	}
	return jsonMoment(text)
}

// jsonNumber returns the value of a number in the configuration.
func jsonNumber(text string) any {
	digits, ok := format.ReadDigits(text)
	if !ok {
		return jsonMoment(text)
	}
	return json.Number(digits)
}

// config returns base with the form's values. Members that the form does not have, such as the brand, stay.
func (f *roomForm) config(base json.RawMessage) (json.RawMessage, error) {
	members := map[string]any{}
	kept := map[string]json.RawMessage{}
	_ = json.Unmarshal(base, &kept) // an empty base has no members
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

// jsonFlag returns true or nil.
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

// storedText returns a stored text or number as it is typed.
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

// storedLength returns a stored length in words.
func storedLength(raw json.RawMessage) string {
	text := storedText(raw)
	if d, err := time.ParseDuration(text); err == nil && d >= 0 && d%time.Millisecond == 0 {
		return format.Duration(d)
	}
	return text
}

// newRoomForm returns the form of a stored configuration, complete or not.
func newRoomForm(config json.RawMessage, host string) roomForm {
	f := roomForm{Host: host}
	for _, s := range formSettings() {
		f.set(s.Name, typedText(s.Kind, setting.Get(config, s.Name)))
	}
	var windows []map[string]json.RawMessage
	_ = json.Unmarshal(setting.Get(config, "windows"), &windows) // a value that is not a list has a problem, which is shown
	for _, w := range windows {
		f.Windows = append(f.Windows, windowField{storedText(w["from"]), storedLength(w["length"])})
	}
	if len(f.Windows) > 0 {
		f.set("opens", cmp.Or(f.Value("opens"), f.Windows[0].From))
		f.Windows[0].From = ""
	}
	return f
}

// addWindow adds a row, which begins at the start, or after ten windows of the last row.
func (f *roomForm) addWindow() {
	if len(f.Windows) == 0 {
		f.Windows = []windowField{{Length: "1 min"}}
		return
	}
	last := f.Windows[len(f.Windows)-1]
	from, known := format.ParseMoment(cmp.Or(last.From, f.Value("opens")))
	next := windowField{Length: last.Length}
	if starts, ok := format.ParseMoment(f.Value("starts")); ok && known && starts.After(from) {
		next.From = f.Value("starts")
	} else if length, ok := format.ReadLength(last.Length); ok && known {
		next.From = from.Add(10 * length).Format(format.MomentLayout)
	}
	f.Windows = append(f.Windows, next)
}

// removeWindow removes a row, unless it is the only one.
func (f *roomForm) removeWindow(i int) {
	if i < 0 || i >= len(f.Windows) || len(f.Windows) == 1 {
		return
	}
	f.Windows = slices.Delete(f.Windows, i, i+1)
	f.Windows[0].From = ""
}

// schedule returns the times and rules for an outline. It returns no rules if the form is malformed.
func (f *roomForm) schedule() (starts, closes fairness.Time, rules []fairness.WindowRule) {
	moment := func(text string, without fairness.Time) fairness.Time {
		if t, ok := format.ParseMoment(text); ok {
			return fairness.Time(t.UnixMilli())
		}
		if text != "" {
			return -1 // invalid
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
		length, _ := format.ReadLength(w.Length)
		rules = append(rules, fairness.WindowRule{From: from, Length: fairness.Millis(length.Milliseconds())})
	}
	if opens < 0 {
		return 0, 0, nil
	}
	return starts, closes, rules
}

// outline describes the form's windows.
func (f *roomForm) outline() []string { return outline(f.schedule()) }

// line is a field of a form in words.
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
		from := format.MomentLine(w.From)
		if i == 0 && first != "" {
			from = first
		}
		windows[i] = fmt.Sprintf("from %s: %s", from, w.Length)
	}
	return strings.Join(windows, "\n")
}
