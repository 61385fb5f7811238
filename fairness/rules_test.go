package fairness

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// flatten lists all texts of a JSON value in order. Each list of numbers is one text.
func flatten(value any, texts []string) []string {
	switch v := value.(type) {
	case string:
		return append(texts, v)
	case map[string]any:
		for _, key := range []string{"secret", "ticket", "pass", "vrf_private_key", "room_hash", "entries", "alpha", "beta", "seed", "order", "orders", "general", "draws", "tickets", "room"} {
			texts = flatten(v[key], texts)
		}
	case []any:
		if numbers := strings.Trim(fmt.Sprint(v), "[]"); len(v) > 0 && fmt.Sprintf("%T", v[0]) == "float64" {
			return append(texts, numbers)
		}
		for _, one := range v {
			texts = flatten(one, texts)
		}
	}
	return texts
}

// TestExamplesAreVectors checks that every example of RULES.md is in the vectors.
func TestExamplesAreVectors(t *testing.T) {
	var value any
	if err := json.Unmarshal([]byte(readText(t, vectorsFile)), &value); err != nil {
		t.Fatal(err)
	}
	all := "\n" + strings.Join(flatten(value, nil), "\n") + "\n"
	examples := regexp.MustCompile("(?s)\n```example\n(.*?)\n```\n").FindAllStringSubmatch(readText(t, "RULES.md"), -1)
	if len(examples) != 11 {
		t.Errorf("RULES.md has %d examples, want 11", len(examples))
	}
	for _, example := range examples {
		if !strings.Contains(all, "\n"+example[1]+"\n") {
			t.Errorf("this example is not in the vectors:\n%s", example[1])
		}
	}
}

// TestRulesAreDocumented checks that RULES.md has every rule of violation.go, in that order, every kind of
// entry, and every limit.
func TestRulesAreDocumented(t *testing.T) {
	doc := readText(t, "RULES.md")
	names := func(text, pattern string) (list []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			list = append(list, m[1])
		}
		return list
	}
	rules, headings := names(readText(t, "violation.go"), `Rule = "(.*)"`), names(doc, `(?m)^### (.*)$`)
	if len(rules) == 0 || !slices.Equal(rules, headings) {
		t.Errorf("violation.go has the rules\n%v, and RULES.md explains\n%v", rules, headings)
	}
	for _, kind := range names(readText(t, "entry.go"), `Kind = "(.*)"`) {
		if !strings.Contains(doc, "\n| "+kind+" | ") {
			t.Errorf("RULES.md has no grammar of %s", kind)
		}
	}
	for _, limit := range []int{
		MaxEntrySize, int(MinWindow), int(MaxWindow), int(MinClaim), int(MaxClaim), int(MinSession), int(MaxSession), int(MaxRate), MaxRules, 2 * MaxRules, MaxLanes, int(MaxWeight),
	} {
		if text := grouped(limit); !strings.Contains(doc, text) {
			t.Errorf("RULES.md does not have the limit %s", text)
		}
	}
	for _, label := range []string{ticketLabel, passLabel, drawLabel, seedLabel, shuffleLabel} {
		if !strings.Contains(doc, `"`+label+`"`) {
			t.Errorf("RULES.md does not have the label %s", label)
		}
	}
}

// grouped formats a number with commas.
func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
