package webhook

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEventsDocumented checks that every event is documented and that its example matches the code.
func TestEventsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("EVENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[EventKind]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		kind, rest, _ := strings.Cut(section, "\n")
		if m := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(rest); m != nil {
			documented[EventKind(kind)] = m[1]
		}
	}
	sent := payloads(t)
	for _, kind := range append(EventKinds(), TestPing, alertEvent) {
		var want, got any
		if err := json.Unmarshal([]byte(documented[kind]), &want); err != nil {
			t.Errorf("%s: the example is no JSON: %v", kind, err)
			continue
		}
		if err := json.Unmarshal([]byte(sent[kind]), &got); err != nil {
			t.Errorf("%s: %v: %s", kind, err, sent[kind])
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-documented +sent)\n%s", kind, diff)
		}
	}
	if len(documented) != len(EventKinds())+2 {
		t.Errorf("%d events are documented", len(documented))
	}
	for _, kind := range append(AlertKinds(), alertTest) {
		if !strings.Contains(string(text), "`"+string(kind)+"`") {
			t.Errorf("alert %s is not documented", kind)
		}
	}
}
