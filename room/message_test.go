package room

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/doctest"
)

// messageVectors are messages that implementations in other languages also read.
type messageVectors struct {
	Messages []struct {
		Canonical, SHA256 string
		Readers           []struct {
			Wanted []string
			Lang   string
		}
	}
}

func TestMessageVectors(t *testing.T) {
	t.Parallel()
	var all messageVectors
	if err := json.Unmarshal([]byte(doctest.Read(t, "testdata/messages.json")), &all); err != nil || len(all.Messages) < 3 {
		t.Fatal(err, len(all.Messages))
	}
	for _, v := range all.Messages {
		a, err := ParseAmendment([]byte(`{"message":` + v.Canonical + `}`))
		if err != nil {
			t.Fatalf("%s: %v", v.Canonical, err)
		}
		m := a.Message.At(time.Now())
		if got := m.Canonical(); got != v.Canonical {
			t.Errorf("canonical form\n%s, want\n%s", got, v.Canonical)
		}
		if sum := sha256.Sum256([]byte(m.Canonical())); hex.EncodeToString(sum[:]) != v.SHA256 {
			t.Errorf("%s has the hash %x", v.Canonical, sum)
		}
		for _, r := range v.Readers {
			if words, tag := m.For(r.Wanted); tag != r.Lang || words != m.Texts[r.Lang] {
				t.Errorf("%q read %s, want %s", r.Wanted, tag, r.Lang)
			}
		}
	}
	const rules = "../fairness/RULES.md"
	form, hash := doctest.Blocks(t, rules, "json"), doctest.Blocks(t, rules, "text")
	if first := all.Messages[0]; form[0] != first.Canonical+"\n" || hash[0] != first.SHA256+"\n" {
		t.Errorf("%s has another example than the vectors", rules)
	}
}

// TestMessageAt gives messages an end: a time, which is kept as it is, or a duration, which is rounded up to
// a whole second.
func TestMessageAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 1, 15, 9, 0, 0, 123_456_789, time.FixedZone("CET", 3600))
	until := now.Add(10 * time.Minute)
	for want, c := range map[string]MessageChange{
		"2027-01-15T08:10:00.123Z": {Message: Message{Texts: map[string]string{"en": "Soon"}, Until: &until}},
		"2027-01-15T08:10:01.000Z": {Message: Message{Default: "en", Texts: map[string]string{"en": "Soon"}}, For: Duration(10 * time.Minute)},
	} {
		m := c.At(now)
		if got := m.Canonical(); got != `{"default":"en","texts":{"en":"Soon"},"until":"`+want+`"}` {
			t.Errorf("%s, want until %s", got, want)
		}
	}
}

// TestMessageProblems lists the problems of invalid messages.
func TestMessageProblems(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range MaxMessageLanguages + 1 {
		many[fmt.Sprintf("de-x-%d", i)] = "Bald"
	}
	tooMany, err := json.Marshal(many)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ message, field, detail string }{
		{`"Soon"`, "message", "must be a JSON object"},
		{`{}`, "message.texts", "a null message removes the current one"},
		{`{"until":"2030-01-01T00:00:00Z"}`, "message.texts", "is needed"},
		{`{"texts":{}}`, "message.texts", "is needed"},
		{`{"texts":{"en":1}}`, "message.texts", "a text for each language"},
		{`{"texts":{"en":" \n"}}`, "message.texts.en", "needs a text"},
		{`{"texts":{"en":"a\tb"}}`, "message.texts.en", "control characters"},
		{`{"texts":{"en":"` + strings.Repeat("é", maxMessage+1) + `"}}`, "message.texts.en", "at most 1000 characters, not 1001"},
		{`{"texts":{"english!":"Soon"}}`, "message.texts", "not a language tag"},
		{`{"texts":{"und":"Soon"}}`, "message.texts", "not a language tag"},
		{`{"texts":{"":"Soon"}}`, "message.texts", "not a language tag"},
		{`{"texts":{"pt-br":"Logo"}}`, "message.texts", "pt-br as pt-BR"},
		{`{"texts":` + string(tooMany) + `,"default":"de-x-1"}`, "message.texts", "at most 12 languages, not 13"},
		{`{"texts":{"en":"Soon","de":"Bald"}}`, "message.default", "one of the texts"},
		{`{"texts":{"en":"Soon"},"default":"de"}`, "message.default", "one of the texts"},
		{`{"texts":{"en":"Soon"},"until":"soon"}`, "message.until", "RFC 3339"},
		{`{"texts":{"en":"Soon"},"for":"-1m"}`, "message.for", "longer than 0"},
		{`{"texts":{"en":"Soon"},"for":"1m","until":"2030-01-01T00:00:00Z"}`, "message.for", "cannot both"},
		{`{"texts":{"en":"Soon"},"language":"en"}`, "message.language", "is not known"},
	} {
		_, err := ParseAmendment([]byte(`{"message":` + test.message + `}`))
		if fields := fieldsOf(t, err); !slices.Equal(fields, []string{test.field}) || !strings.Contains(err.Error(), test.detail) {
			t.Errorf("%.60s: %v", test.message, err)
		}
	}
	long := `{"message":{"texts":{"en":"` + strings.Repeat("é", maxMessage) + `"}}}`
	if a, err := ParseAmendment([]byte(long)); err != nil || a.Message.IsNone() {
		t.Errorf("the longest text: %v", err)
	}
	if a, err := ParseAmendment([]byte(`{"message":null}`)); err != nil || !a.Message.IsNone() {
		t.Errorf("none: %v", err)
	}
}

// TestSnapshotMessage checks that a message disappears by itself.
func TestSnapshotMessage(t *testing.T) {
	t.Parallel()
	until := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	m := &Message{Default: "en", Texts: map[string]string{"en": "Soon"}, Until: &until}
	s := &Snapshot{message: m}
	if diff := cmp.Diff(m, s.Message(until.Add(-time.Millisecond))); diff != "" {
		t.Error(diff)
	}
	if got := s.Message(until); got != nil {
		t.Errorf("over: %+v", got)
	}
	s.message = &Message{Default: "en", Texts: m.Texts}
	if s.Message(until.AddDate(100, 0, 0)) == nil {
		t.Error("a message without an end is over")
	}
	if got := (&Snapshot{}).Message(until); got != nil {
		t.Errorf("none: %+v", got)
	}
}
