package jsontext

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	for _, c := range []struct{ name, text, want string }{
		{"nothing", ``, ""},
		{"a number", `1`, ""},
		{"an object", `{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}`, ""},
		{"strings that look like members", `{"a": "b", "b": "\"a\": 1, {", "c": ["a", "a"]}`, ""},
		{"twice", `{"a": 1, "a": 1}`, "a must appear only once"},
		{"twice, the values being objects", `{"a": {"b": 1}, "a": {}}`, "a must appear only once"},
		{"twice, inside", `{"x": {"a": 1, "a": 1}}`, "x.a must appear only once"},
		{"twice, after a nested object", `{"x": {"a": 1, "b": [1, [2]]}, "y": [], "x": 1}`, "x must appear only once"},
		{"twice, in a list", `[1, {"rules": [{}, {"a": 1, "a": 2}]}]`, "[1].rules[1].a must appear only once"},
		{"twice, one escaped", `{"ab": 1, "\u0061b": 1}`, "ab must appear only once"},
		{"twice, both escaped", `{"\"": 1, "\u0022": 1}`, `" must appear only once`},
		{"twice, not ASCII", "{\"\u00fc\": 1, \"\\u00fc\": 1}", "\u00fc must appear only once"},
		{"twice, once invalid UTF-8 is replaced", "{\"\xff\": 1, \"\xfe\": 1}", "\ufffd must appear only once"},
		{"twice, empty", `{"": 1, "": 1}`, "must appear only once"},
		{"in two cases", `{"a": 1, "A": 1}`, ""},
		{"twice, and long", `{"` + long + `": 1, "` + long + `": 1}`, long[:100] + "... must appear only once"},
		{"as deep as may be", `[[[[{"a":[[]]}]]]]`, ""},
		{"deeper", `[0, [[[{"a":[[ [1] ]]}]]]]`, "[1][0][0][0].a[0][0] must not be nested deeper than 7 lists and objects"},
		{"deeper, and no JSON", strings.Repeat("[", 8),
			"[0][0][0][0][0][0][0] must not be nested deeper than 7 lists and objects"},
		{"ends too early", `{"a": {"b"`, ""},
		{"ends in a string", `{"a\`, ""},
		{"ends too often", `}]},,}`, ""},
	} {
		got := ""
		if err := (Form{Depth: 7}).Check([]byte(c.text)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestItems limits the length of lists, and not the number of members.
func TestItems(t *testing.T) {
	t.Parallel()
	f := Form{Depth: 9, Items: 2}
	for text, want := range map[string]string{
		`[1, 2]`: "", `[[1, 2], {"a": 1, "b": 2, "c": [1, [2, 3]]}]`: "",
		`[1, 2, 3]`:                    "[2] is too much: a list has at most 2 items",
		`{"a": 0, "b": [[], [1,2,3]]}`: "b[1][2] is too much: a list has at most 2 items",
	} {
		got := ""
		if err := f.Check([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestNames checks the names and paths passed to Name.
func TestNames(t *testing.T) {
	t.Parallel()
	var got []string
	f := Form{Depth: 9, Name: func(within []string, name string) string {
		got = append(got, strings.Join(append(slices.Clone(within), name), "."))
		if name == "bad" {
			return "is bad"
		}
		return ""
	}}
	err := f.Check([]byte(`{"a": {"b": [[{"c": {}}], {"d": 1}], "e": "f"}, "g": [{}], "h": {"bad": 1, "never": 2}}`))
	if err == nil || err.Field != "h.bad" || err.Detail != "is bad" {
		t.Errorf("error %v", err)
	}
	if want := []string{"a", "a.b", "a.b.c", "a.b.d", "a.e", "g", "h", "h.bad"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

// reference finds duplicate members with Go's decoder, token by token.
func reference(d *json.Decoder, depth int) error {
	token, err := d.Token()
	if err != nil {
		return nil //nolint:nilerr // not JSON
	}
	if _, isDelim := token.(json.Delim); !isDelim {
		return nil
	}
	if depth == 0 {
		return errors.New("deep")
	}
	for seen := map[string]bool{}; d.More(); {
		if token == json.Delim('{') {
			name, _ := d.Token()
			text, _ := name.(string)
			if seen[text] {
				return errors.New("twice")
			}
			seen[text] = true
		}
		if err := reference(d, depth-1); err != nil {
			return err
		}
	}
	_, _ = d.Token()
	return nil
}

// FuzzCheck compares Check with the reference.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{`{"a": [{"b": 1, "b": 2}], "a": "\"{"}`, `[[[[1]]]]`, `{"\u0061": {}, "a": 1}`,
		"{\"\xff\": 1, \"\xfe\": [true, null]}", `{"a" "a" "a"}`, `{"\ud800":1,"\udc00":2}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Form{Depth: 3}.Check([]byte(text))
		if !json.Valid([]byte(text)) {
			return
		}
		if want := reference(json.NewDecoder(strings.NewReader(text)), 3); (got == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

// BenchmarkCheck reads 1 MiB of a connector's report, and of the most expensive texts: names and
// depth.
func BenchmarkCheck(b *testing.B) {
	members := make([]string, 50_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"member%d":0`, i)
	}
	for name, text := range map[string]string{
		"ids":   `{"rooms":[{"started":["` + strings.Repeat(`AAAAAAAAAAAAAAAAAAAAAA","`, 40_000) + `"]}]}`,
		"names": "{" + strings.Join(members, ",") + "}",
		"depth": strings.Repeat("[", 1<<20),
		"quote": `{"` + strings.Repeat(`\"`, 1<<19) + `":1}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_ = Form{Depth: 64}.Check([]byte(text))
			}
		})
	}
}
