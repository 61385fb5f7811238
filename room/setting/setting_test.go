package setting

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/invalid"
)

// TestTable: every setting has what its consumers need.
func TestTable(t *testing.T) {
	t.Parallel()
	var seen []string
	for _, s := range All() {
		if slices.Contains(seen, s.Name) {
			t.Errorf("%s appears twice", s.Name)
		}
		seen = append(seen, s.Name)
		if s.Label == "" || s.Help == "" || s.Default == "" {
			t.Errorf("%s has no label, help or default", s.Name)
		}
		if strings.HasSuffix(s.Help, ".") || s.Sentence()[0] == s.Help[0] && s.Help[0] >= 'a' && s.Help[0] <= 'z' {
			t.Errorf("%s: help %q, as a sentence %q", s.Name, s.Help, s.Sentence())
		}
		if found, ok := Find(s.Name); !ok || found.Label != s.Label || found.Name != s.Name {
			t.Errorf("%s is found as %+v", s.Name, found)
		}
		if s.Initial != nil {
			if problems := Check(s.Name, s.Initial); problems != nil {
				t.Errorf("the default of %s: %v", s.Name, problems)
			}
		}
	}
	for _, path := range []string{"brand.dark.color", "brand.texts.en.headline", "windows[].length", "message.until"} {
		if s, ok := Find(path); !ok || s.Name != path {
			t.Errorf("%s is found as %+v", path, s)
		}
	}
	for _, path := range []string{"", "outflow.", "brand.colour", "title.en", "windows.x"} {
		if s, ok := Find(path); ok {
			t.Errorf("%q is found as %+v", path, s)
		}
	}
}

// TestKinds parses valid and invalid values of every kind.
func TestKinds(t *testing.T) {
	t.Parallel()
	members := []Setting{{Name: "n", Kind: Number{Max: 9}}}
	for _, test := range []struct {
		kind Kind
		good string // separated by spaces
		bad  string
		want string
	}{
		{Text{}, `"" "a"`, `1 [] {}`, "must be a text"},
		{Text{Max: 2}, `"" "éé"`, `"abc" "\u0000"`, "must be a text of at most 2 characters of UTF-8, none of them NUL"},
		{Number{Min: 1, Max: 3}, `1 3`, `0 4 -1 1.5 "1"`, "must be a whole number from 1 to 3"},
		{Duration{time.Second, 48 * time.Hour}, `"1s" "48h" "1m30s"`, `"999ms" "49h" "-1s" "1us" 1 "1"`,
			`must be a duration from 1 second to 2 days, such as "30s"`},
		{Duration{}, `"-1s" "0"`, `"x"`, `must be a duration such as "30s"`},
		{Time{}, `"2030-05-01T12:00:00Z"`, `"noon" 1 ""`, Time{}.Want()},
		{Flag{}, `true false`, `1 "true"`, "must be true or false"},
		{Zone{}, `"" "UTC" "Europe/Vienna"`, `"CEST" "Local" 1`, Zone{}.Want()},
		{Source{}, `"" "none" "drand:x"`, `"x" 1`, Source{}.Want()},
		{List{Wants: "list"}, `[] ["a"]`, `{} [1] "a"`, "list"},
		{Objects{Members: members, Wants: "list"}, `[] [{}] [{"n":9}]`, `{} 1`, "list"},
		{Object{Members: members}, `{} {"n":9}`, `[] 1`, "must be a JSON object"},
		{Map{Wants: "map"}, `{} {"a":"b"}`, `[] {"a":1}`, "map"},
	} {
		if test.kind.Want() != test.want {
			t.Errorf("%T wants %q, want %q", test.kind, test.kind.Want(), test.want)
		}
		if zero := test.kind.Zero(); zero != nil && test.want != "must be a whole number from 1 to 3" {
			r := &reader{}
			if test.kind.read(r, "x", encode(zero)); r.list != nil {
				t.Errorf("the zero of %T: %v", test.kind, r.list)
			}
		}
		for _, text := range strings.Fields(test.good) {
			r := &reader{}
			if clean, ok := test.kind.read(r, "x", json.RawMessage(text)); !ok || r.list != nil || string(clean) != text {
				t.Errorf("%T %s: %s, %v", test.kind, text, clean, r.list)
			}
		}
		for _, text := range strings.Fields(test.bad) {
			r := &reader{}
			_, ok := test.kind.read(r, "x", json.RawMessage(text))
			if ok || len(r.list) != 1 || r.list[0] != (invalid.Problem{Field: "x", Detail: test.want}) {
				t.Errorf("%T %s: %v", test.kind, text, r.list)
			}
		}
	}
}

// TestRead keeps well-formed values, and fills in the defaults of settings that may change freely.
func TestRead(t *testing.T) {
	t.Parallel()
	clean, problems := Read([]byte(`{"slug":"a","title":7,"outflow":{"per_minute":0,"max_active":9},
		"windows":[{"length":"1m","from":"x"},7],"brand":{"color":"red","dark":{"logo":1}},"x":1,"time_zone":null}`))
	want := `{"brand":{"color":"red","dark":{}},"max_waiting":1000000,"outflow":{"max_active":9},"slug":"a",` +
		`"windows":[{"length":"1m"},{}]}`
	if diff := cmp.Diff(want, string(clean)); diff != "" {
		t.Error(diff)
	}
	fields := ""
	for _, p := range problems {
		fields += p.Field + " "
	}
	if fields != "x title windows[0].from windows[1] outflow.per_minute brand.dark.logo " {
		t.Errorf("problems with %s", fields)
	}
	for text, want := range map[string]string{
		`{"outflow":{"per_minute":5},"message":null,"title":null}`: `{"message":null,"outflow":{"per_minute":5}}`,
		`{"brand":{}}`: `{"brand":{}}`,
	} {
		if clean, problems := ReadAmendment([]byte(text)); string(clean) != want || problems != nil {
			t.Errorf("%s is read as %s, %v", text, clean, problems)
		}
	}
	_, problems = ReadAmendment([]byte(`{"outflow":{}}`))
	if want := (invalid.List{{Field: "outflow", Detail: "changes nothing: give per_minute or max_active"}}); cmp.Diff(want, problems) != "" {
		t.Errorf("problems %v", problems)
	}
	_, problems = ReadAmendment([]byte(`{}`))
	if len(problems) != 1 || !strings.HasPrefix(problems[0].Detail, "changes nothing: give title, closes, windows, issuers, seats, outflow, message, ") {
		t.Errorf("problems %v", problems)
	}
}

// TestMembers stores members in an object, and reads them again.
func TestMembers(t *testing.T) {
	t.Parallel()
	members := map[string]any{}
	Put(members, "title", "a")
	Put(members, "outflow.per_minute", 5)
	Put(members, "outflow.max_active", 6)
	text := encode(members)
	if string(text) != `{"outflow":{"max_active":6,"per_minute":5},"title":"a"}` {
		t.Errorf("put %s", text)
	}
	for path, want := range map[string]string{"title": `"a"`, "outflow.per_minute": "5", "x": "", "x.y": "", "title.x": ""} {
		if got := Get(text, path); string(got) != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if got := Get([]byte("[]"), "title"); got != nil {
		t.Errorf("a list has the title %s", got)
	}
}
