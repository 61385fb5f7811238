package rules

import (
	"encoding/json"
	"net/netip"
	"os"
	"testing"
	"time"
)

// vectors are the decisions that every connector must make, with their sites.
type vectors struct {
	Sites map[string]json.RawMessage `json:"sites"`
	// documents are texts that are valid or invalid rules.
	Documents []struct {
		Name  string `json:"name"`
		Text  string `json:"text"`
		Valid bool   `json:"valid"`
	} `json:"documents"`
	Cases []struct {
		Name    string    `json:"name"`
		Site    string    `json:"site"`
		Now     time.Time `json:"now"`
		Request struct {
			Method string              `json:"method"`
			Host   string              `json:"host"`
			Target string              `json:"target"`
			Header map[string][]string `json:"header"`
			Client netip.Addr          `json:"client"`
		} `json:"request"`
		Decision struct {
			Outcome string `json:"outcome"`
			Room    string `json:"room"`
			Rule    string `json:"rule"`
		} `json:"decision"`
	} `json:"cases"`
}

func readVectors(t testing.TB) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("../testdata/rules-vectors.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustParse(t testing.TB, text string) *Site {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVectors(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.Cases) < 200 {
		t.Errorf("%d cases, want at least 200", len(v.Cases))
	}
	sites, names := map[string]*Site{}, map[string]bool{}
	for name, text := range v.Sites {
		sites[name] = mustParse(t, string(text))
	}
	for _, c := range v.Cases {
		if names[c.Name] {
			t.Errorf("two cases are named %q", c.Name)
		}
		names[c.Name] = true
		got := sites[c.Site].Decide(&Request{Method: c.Request.Method, Host: c.Request.Host, Target: c.Request.Target, Header: c.Request.Header, Client: c.Request.Client}, c.Now)
		if got.Outcome.String() != c.Decision.Outcome || got.Room != c.Decision.Room || got.Rule != c.Decision.Rule {
			t.Errorf("%s: %s %q by rule %q, want %+v", c.Name, got.Outcome, got.Room, got.Rule, c.Decision)
		}
	}
}

// TestDocuments parses texts, some of which are invalid rules although JSON parsers that take one of two
// members with the same name would accept them.
func TestDocuments(t *testing.T) {
	t.Parallel()
	v := readVectors(t)
	if len(v.Documents) < 20 {
		t.Errorf("%d documents, want at least 20", len(v.Documents))
	}
	for _, d := range v.Documents {
		if _, err := Parse([]byte(d.Text)); (err == nil) != d.Valid {
			t.Errorf("%s: %v, want valid: %t", d.Name, err, d.Valid)
		}
	}
}
