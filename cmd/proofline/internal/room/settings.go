package room

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room/setting"
)

// settingFlag is a flag that changes a setting. It implements [pflag.Value].
type settingFlag struct {
	setting setting.Setting
	help    string // help text that replaces the setting's; empty: the setting's
	value   any    // value from the command line; nil: the flag is not given
}

// settingFlags are the flags of all settings that may change.
type settingFlags []*settingFlag

// brandFlags are the members of a brand that have flags, and their help.
var brandFlags = [][2]string{
	{"brand.logo", "`FILE` of a PNG, JPEG or WebP image of at most 64 KiB; empty: no logo"},
	{"brand.color", "`#rrggbb` of buttons and links; empty: the default"},
	{"brand.background", "`#rrggbb` of the page; empty: the default"},
}

// addSettingFlags adds a flag for each setting that may change, except objects.
func addSettingFlags(flags *pflag.FlagSet) settingFlags {
	var added settingFlags
	for _, s := range setting.Amendable() {
		switch s.Kind.(type) {
		case setting.Text, setting.Number, setting.Duration, setting.Time, setting.Flag, setting.Zone, setting.List:
			added = append(added, &settingFlag{setting: s})
		}
	}
	for _, f := range brandFlags {
		s, _ := setting.Find(f[0])
		added = append(added, &settingFlag{setting: s, help: f[1]})
	}
	for _, f := range added {
		set := flags.VarPF(f, f.name(), "", f.usage())
		if _, ok := f.setting.Kind.(setting.Flag); ok {
			set.NoOptDefVal = "true"
		}
	}
	return added
}

// members returns the JSON members that the given flags change.
func (l settingFlags) members() map[string]any {
	members := map[string]any{}
	for _, f := range l {
		if f.value != nil {
			setting.Put(members, f.setting.Name, f.value)
		}
	}
	return members
}

func (f *settingFlag) name() string {
	name := strings.ReplaceAll(f.setting.Last(), "_", "-")
	if _, ok := f.setting.Kind.(setting.List); ok {
		return strings.TrimSuffix(name, "s")
	}
	return name
}

func (f *settingFlag) usage() string {
	if f.help != "" {
		return f.help
	}
	text := strings.ReplaceAll(f.setting.Help, "`", "")
	switch f.setting.Kind.(type) {
	case setting.List:
		text += "; repeat the flag for more; empty: none"
	case setting.Flag:
		text += "; =false turns it off"
	case setting.Zone:
		text += "; empty: " + f.setting.Default
	}
	if f.setting.Change == setting.Recorded {
		text += " (recorded)"
	}
	return text
}

// Type returns the placeholder that the help shows, or "bool".
func (f *settingFlag) Type() string {
	switch f.setting.Kind.(type) {
	case setting.Number:
		return "N"
	case setting.Duration:
		return "DURATION"
	case setting.Time:
		return "TIME"
	case setting.Zone:
		return "ZONE"
	case setting.Flag:
		return "bool"
	case setting.List:
		return "VALUE"
	}
	return "TEXT"
}

// String returns nothing: no setting has a default value on the command line.
func (f *settingFlag) String() string { return "" }

// Set reads the flag's value. The server checks more than its form.
func (f *settingFlag) Set(text string) error {
	switch f.setting.Kind.(type) {
	case setting.Number:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return errors.New("must be a whole number")
		}
		f.value = n
	case setting.Flag:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New(f.setting.Kind.Want())
		}
		f.value = on
	case setting.List:
		list, _ := f.value.([]string)
		if list == nil {
			list = []string{}
		}
		if text != "" {
			list = append(list, text)
		}
		f.value = list
	default:
		f.value = text
	}
	return nil
}

// settingRows returns table rows of a room's settings. Adjacent settings with the same label share
// a row.
func settingRows(raw []byte, isIn func(setting.Setting) bool) [][]string {
	var rows [][]string
	shared := "" // label of the last row if others may join it
	for _, s := range setting.All() {
		if s.Row.Label == "" || !isIn(s) {
			continue
		}
		words := settingWords(s, setting.Get(raw, s.Name))
		if last := len(rows) - 1; s.Row.Label == shared && len(words) > 0 {
			rows[last][1] += ", " + strings.Join(words, ", ")
			continue
		}
		shared = ""
		for _, line := range words {
			rows, shared = append(rows, []string{s.Row.Label, line}), s.Row.Label
		}
	}
	return rows
}

// settingWords describes a setting's value, in one line for each item of a list.
func settingWords(s setting.Setting, raw json.RawMessage) []string {
	values := valueWords(s.Kind, raw)
	if len(values) == 0 && s.Row.None != "" {
		return []string{s.Row.None}
	}
	for i, value := range values {
		if s.Row.Format != "" {
			values[i] = strings.ReplaceAll(s.Row.Format, "%s", value)
		}
	}
	return values
}

// valueWords returns a value as text, one for each item of a list; none if the value is zero.
func valueWords(k setting.Kind, raw json.RawMessage) []string {
	switch k := k.(type) {
	case setting.Time:
		if t := decoded[*time.Time](raw); t != nil {
			return []string{localTime(*t)}
		}
		return nil
	case setting.Number:
		if n := decoded[uint32](raw); n > 0 {
			return []string{strconv.FormatUint(uint64(n), 10)}
		}
		return nil
	case setting.Flag:
		if decoded[bool](raw) {
			return []string{"yes"}
		}
		return nil
	case setting.List:
		return decoded[[]string](raw)
	case setting.Windows:
		return ruleWords(raw)
	case setting.Objects:
		return objectWords(k.Members, raw)
	case setting.Methods:
		return methodWords(raw)
	case setting.Source:
		if decoded[string](raw) == setting.NoBeacon {
			return []string{"none: auditors cannot tell whether the operator chose the outcome"}
		}
	}
	return slices.DeleteFunc([]string{decoded[string](raw)}, func(text string) bool { return text == "" })
}

// ruleWords describes window rules.
func ruleWords(raw json.RawMessage) []string {
	var words []string
	for _, w := range decoded[[]struct {
		From   time.Time `json:"from"`
		Length string    `json:"length"`
	}](raw) {
		words = append(words, fmt.Sprintf("of %s from %s", w.Length, localTime(w.From)))
	}
	return words
}

// objectWords describes a list of objects by the values of their members.
func objectWords(members []setting.Setting, raw json.RawMessage) []string {
	var words []string
	for _, object := range decoded[[]json.RawMessage](raw) {
		var values []string
		for _, m := range members {
			if value := strings.Join(valueWords(m.Kind, setting.Get(object, m.Name)), ", "); value != "" {
				values = append(values, strings.ReplaceAll(cmp.Or(m.Row.Format, "%s"), "%s", value))
			}
		}
		words = append(words, strings.Join(values, " "))
	}
	return words
}

// methodWords describes methods as a policy has them.
func methodWords(raw json.RawMessage) []string {
	var words []string
	for _, m := range decoded[[]credential.Method](raw) {
		words = append(words, string(m.AppendText(nil)))
	}
	return words
}

// decoded returns a JSON value; zero if it has another type.
func decoded[T any](raw json.RawMessage) T {
	var value T
	_ = json.Unmarshal(raw, &value) // the server's answer was already parsed
	return value
}
