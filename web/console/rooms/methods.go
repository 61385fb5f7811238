package rooms

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
)

// The members of a method in the order of its line.
var (
	signedMembers = []string{"name", "kind", "key", "limit"}
	workMembers   = []string{"name", "kind", "bits"}
)

// methodLines reads methods, one per line: NAME work BITS, or NAME signed or blind, KEY and LIMIT. A line may begin
// with the word method, as in a policy. The word "-" stands for nothing.
func methodLines(text string) []map[string]any {
	var list []map[string]any
	for _, line := range textLines(text) {
		words := strings.Fields(line)
		if len(words) > 3 && words[0] == "method" && words[1] != string(credential.Signed) &&
			words[1] != string(credential.Blind) {
			words = words[1:]
		}
		names := signedMembers
		if len(words) > 1 && words[1] == string(credential.Work) {
			names = workMembers
		}
		method := map[string]any{}
		for i, word := range words {
			switch {
			case i >= len(names):
				method[""] = word
			case word == absent:
			case names[i] == "bits" || names[i] == "limit":
				method[names[i]] = jsonNumber(word)
			default:
				method[names[i]] = word
			}
		}
		list = append(list, method)
	}
	return list
}

// methodText writes methods in the form that methodLines reads. Malformed ones are written as far as that goes.
func methodText(raw json.RawMessage) string {
	var methods []map[string]json.RawMessage
	_ = json.Unmarshal(raw, &methods) // a value that is not a list has a problem, which is shown
	lines := make([]string, len(methods))
	for i, m := range methods {
		names := signedMembers
		if storedText(m["kind"]) == string(credential.Work) {
			names = workMembers
		}
		var words []string
		for _, name := range names {
			words = append(words, cmp.Or(strings.ReplaceAll(storedText(m[name]), " ", ""), absent))
		}
		lines[i] = methodLine(words)
	}
	return strings.Join(lines, "\n")
}

// methodLine joins the words of a line, without those at the end that stand for nothing.
func methodLine(words []string) string {
	for len(words) > 0 && words[len(words)-1] == absent {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}

// methodRow is a method as a row of fields.
type methodRow struct {
	Index                 int
	Name, Kind, Key, Size string // Size: bits of work, or the limit of others
	Listed                bool   // the key is one of the choices
}

// Field returns the name of a field of the row. It is that of the member in a room's JSON.
func (r methodRow) Field(member string) string { return fmt.Sprintf("methods[%d].%s", r.Index, member) }

// methodRows returns the rows for lines that are typed; false if rows cannot say it.
func methodRows(text string, keys []control.IssuerKey) (rows []methodRow, ok bool) {
	for i, method := range methodLines(text) {
		row := methodRow{Index: i}
		for name, value := range method {
			switch word := fmt.Sprint(value); name {
			case "name":
				row.Name = word
			case "kind":
				row.Kind = word
			case "key":
				row.Key = word
			case "bits", "limit":
				row.Size = word
			default:
				return nil, false
			}
		}
		if !slices.Contains(methodKinds, credential.Kind(row.Kind)) {
			return nil, false
		}
		isNew := row.Name == "" && row.Key == ""
		row.Listed = isNew || slices.ContainsFunc(keys, func(k control.IssuerKey) bool { return k.Key == row.Key })
		rows = append(rows, row)
	}
	return rows, true
}

// methodKinds are the kinds that rows offer.
var methodKinds = []credential.Kind{credential.Signed, credential.Blind, credential.Work}

// readMethodRows returns the lines for the rows that were sent. Capitals and spaces in a name, and spaces in a key, are
// put right.
func readMethodRows(v url.Values) string {
	var lines []string
	for i := range maxMethodRows {
		row := methodRow{Index: i}
		if !v.Has(row.Field("name")) {
			break
		}
		sent := func(member string) []string { return strings.Fields(format.Clean(v.Get(row.Field(member)))) }
		word := func(text string) string { return cmp.Or(strings.ToLower(text), absent) }
		kind := word(strings.Join(sent("kind"), ""))
		words := []string{word(strings.Join(sent("name"), "-")), kind}
		if kind == string(credential.Work) {
			words = append(words, word(strings.Join(sent("bits"), "")))
		} else {
			key := cmp.Or(strings.Join(sent("issuer"), ""), strings.Join(sent("key"), ""))
			words = append(words, word(key), word(strings.Join(sent("limit"), "")))
		}
		lines = append(lines, methodLine(words))
	}
	return strings.Join(lines, "\n")
}

// maxMethodRows bounds the rows that are read. A room can have fewer methods.
const maxMethodRows = 64

// newMethod is the line of a new row.
const newMethod = absent + " signed"

// methodsForm is the part of the editor with a room's methods: rows, or the text that they stand for.
type methodsForm struct {
	formField
	AsText bool
	Rows   []methodRow
	Keys   []control.IssuerKey
	Kinds  []credential.Kind
	Member map[string]setting.Setting // settings of a method, by name
}

// Methods returns the form of the methods.
func (p editorPage) Methods() methodsForm {
	s, _ := setting.Find("methods")
	f := methodsForm{formField: newField(s, p.Form.Value(s.Name), newRoom), AsText: p.Form.AsText, Keys: p.Keys,
		Kinds: methodKinds, Member: map[string]setting.Setting{}}
	for _, m := range setting.Members(s.Kind) {
		f.Member[m.Name] = m
	}
	var ok bool
	if f.Rows, ok = methodRows(f.Value, p.Keys); !ok {
		f.AsText = true
	}
	return f
}

// removeMethod removes a row.
func (f *roomForm) removeMethod(i int) {
	lines := textLines(f.Value("methods"))
	if i >= 0 && i < len(lines) {
		f.set("methods", strings.Join(slices.Delete(lines, i, i+1), "\n"))
	}
}
