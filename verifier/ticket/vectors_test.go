package ticket

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const vectorsFile = "testdata/vectors.json"

var update = flag.Bool("update", false, "write "+vectorsFile+" anew")

// vectors is testdata/vectors.json, for readers in any language. It includes the table of verdicts, so that
// all languages have the same colours.
type vectors struct {
	About    []string                     `json:"about"`
	Verdicts map[LineID]map[Reason]Status `json:"verdicts"`
	Files    []fileVector                 `json:"files"`
	Refused  []refusedVector              `json:"refused"`
}

// fileVector is a file with its expected lines.
type fileVector struct {
	Name  string  `json:"name"`
	File  string  `json:"file"`
	Lines [4]Line `json:"lines"`
}

// refusedVector is a change that makes the first file invalid: a text that occurs in it once, and its
// replacement.
type refusedVector struct {
	Name string `json:"name"`
	Find string `json:"find"`
	Put  string `json:"put"`
}

func hashOf(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }

func TestVectors(t *testing.T) {
	v := vectors{
		About: []string{
			"Saved proofs of visitors, as BUNDLE.md describes them, and what is to be said about each.",
			"Made by `go test ./verifier/ticket -run TestVectors -update` from rooms of internal/roomtest.",
			"Each refused one is the first file with one text, which is in it once, replaced.",
		},
		Verdicts: Verdicts,
		Refused:  refused,
	}
	for _, c := range newStage(t).cases() {
		file := c.bundle.file(t)
		b, err := Parse(file)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		lines := Check(b, Trust{})
		if got := reasons(lines); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		v.Files = append(v.Files, fileVector{c.name, string(file), lines})
	}
	var made bytes.Buffer
	e := json.NewEncoder(&made)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, made.Bytes()) {
		t.Errorf("%s is another one (-file +made):\n%s", vectorsFile, cmp.Diff(string(kept), made.String()))
	}
}

// TestVectorsCover checks that every reason has a file.
func TestVectorsCover(t *testing.T) {
	said := map[LineID]map[Reason]bool{}
	for _, id := range Lines {
		said[id] = map[Reason]bool{}
	}
	for _, f := range readVectors(t).Files {
		for _, line := range f.Lines {
			if Verdicts[line.ID][line.Reason] != line.Status || line.Status == "" {
				t.Errorf("%s: %s %s is %s", f.Name, line.ID, line.Reason, line.Status)
			}
			said[line.ID][line.Reason] = true
		}
	}
	for id, reasons := range Verdicts {
		for reason := range reasons {
			if !said[id][reason] {
				t.Errorf("no file with %s %s", id, reason)
			}
		}
	}
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	kept, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(kept, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

var refused = []refusedVector{
	{"version 2", `"version": 1`, `"version": 2`},
	{"version as a text", `"version": 1`, `"version": "1"`},
	{"version in another form", `"version": 1`, `"version": 1.0`},
	{"no version", ` "version": 1,` + "\n", ""},
	{"version twice", `"version": 1,`, `"version": 1, "version": 1,`},
	{"a member twice", `"amends": [],`, `"amends": [],` + "\n" + ` "amends": [],`},
	{"another order of members", ` "version": 1,` + "\n" + ` "origin": "queue.example.com/r/ticket",`, ` "origin": "queue.example.com/r/ticket",` + "\n" + ` "version": 1,`},
	{"an unknown member", `"amends": [],`, `"amends": [],` + "\n" + ` "secret": "",`},
	{"an unknown member of an entry", "\"room\": {\n", "\"room\": {\n  \"kind\": \"room\",\n"},
	{"a name in other case", `"amends"`, `"Amends"`},
	{"no merits", ` "merits": [],` + "\n", ""},
	{"a merit null", `"merits": []`, `"merits": [null]`},
	{"no amendments", ` "amends": [],` + "\n", ""},
	{"amendments null", `"amends": []`, `"amends": null`},
	{"amendments an object", `"amends": []`, `"amends": {}`},
	{"an amendment null", `"amends": []`, `"amends": [null]`},
	{"a growth null", `"amends": []`, `"growth": null`},
	{"no origin", ` "origin": "queue.example.com/r/ticket",` + "\n", ""},
	{"an origin that is no text", `"origin": "queue.example.com/r/ticket"`, `"origin": 1`},
	{"an escape that is not needed", `"origin": "queue.`, `"origin": "\u0071ueue.`},
	{"a slash escaped", `"origin": "queue.example.com/r`, `"origin": "queue.example.com\/r`},
	{"half a character", `"origin": "queue.`, `"origin": "\ud800queue.`},
	{"a space more", `"amends": []`, `"amends":  []`},
	{"an index as a number", `"index": "0"`, `"index": 0`},
	{"an index with a leading zero", `"index": "0"`, `"index": "00"`},
	{"a negative index", `"index": "0"`, `"index": "-0"`},
	{"an index too large", `"index": "0"`, `"index": "9223372036854775808"`},
	{"a position that is empty", `"amends": []`, `"shown": "",` + "\n" + ` "amends": []`},
	{"gave up not", `"amends": []`, `"amends": [],` + "\n" + ` "gave_up": false`},
	{"text in base64", `"origin": "queue`, `"origin": {"base64": "cXVldWU="}, "x": "`},
	{"an invalid ticket", `"ticket": "`, `"ticket": "x`},
	{"trailing data", "\n}\n", "\n}\n{}"},
	{"no newline at the end", "\n}\n", "\n}"},
	{"the end cut off", "\n}\n", "\n"},
	{"not JSON", "{\n \"version\"", "{\n version"},
	{"a byte order mark", "{\n \"version\"", "\ufeff{\n \"version\""},
	{"a list", "{\n \"version\"", "[{\n \"version\""},
}

func TestRefused(t *testing.T) {
	first := readVectors(t).Files[0].File
	for _, r := range readVectors(t).Refused {
		if strings.Count(first, r.Find) != 1 {
			t.Errorf("%s: %q is there %d times", r.Name, r.Find, strings.Count(first, r.Find))
		}
		if b, err := Parse([]byte(strings.Replace(first, r.Find, r.Put, 1))); !errors.Is(err, ErrBundle) || b != nil {
			t.Errorf("%s: error %v", r.Name, err)
		}
	}
	for name, file := range map[string]string{
		"empty": "", "null": "null", "a number": "1", "a text": `"x"`, "an empty object": "{}\n",
		"not UTF-8": strings.Replace(first, "queue.", "queu\xff.", 1),
		"too long":  strings.Replace(first, `"malformed"`, "", 1) + strings.Repeat(" ", MaxSize),
		"deep":      strings.Repeat("[", 1<<20),
	} {
		if b, err := Parse([]byte(file)); !errors.Is(err, ErrBundle) || b != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
