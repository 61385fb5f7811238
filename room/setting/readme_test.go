package setting

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of settings into the README")

// changes are the words in the README's table for whether a setting may change.
var changes = map[Change]string{Never: "no", Recorded: "recorded", Free: "yes"}

// TestReadme compares the table of settings in the README with this package's.
func TestReadme(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../../README.md", "<!-- settings -->\n", "<!-- /settings -->"
	var table strings.Builder
	table.WriteString("| a room's JSON | meaning | default | may change |\n|---|---|---|---|\n")
	for _, s := range All() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", s.Name, s.Help, s.Default, changes[s.Change])
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the README has no place for the settings")
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != table.String() {
		t.Error("the README does not list the settings as they are: go test ./room/setting -run TestReadme -update")
	}
}
