package doctest_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/doctest"
)

const text = "# A\n\nRun `a b` and `c`.\n\n```sh\nfirst    # why\n\n# alone\nsecond \\\n  more\n```\n\n```json\n{\"a\": \"`d`\"}\n```\n\n    ```sh\n    no block\n    ```\n"

func TestBlocks(t *testing.T) {
	t.Parallel()
	want := []doctest.Block{{Language: "sh", Text: "first    # why\n\n# alone\nsecond \\\n  more\n"},
		{Language: "json", Text: "{\"a\": \"`d`\"}\n"}}
	if diff := cmp.Diff(want, doctest.All(text)); diff != "" {
		t.Error(diff)
	}
	if got := doctest.Blocks(t, "../../README.md", "json"); len(got) != 1 ||
		!strings.HasPrefix(got[0], "{\n  \"slug\": \"sale\"") {
		t.Errorf("%q", got)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	got := doctest.Commands(doctest.All(text)[0].Text)
	if diff := cmp.Diff([]string{"first", "second    more"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSpans(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"a b", "c"}, doctest.Spans("Run `a b` and `c`.\n```sh\n`x`\n```\n")); diff != "" {
		t.Error(diff)
	}
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, name := range doctest.Documents(t, "../..") {
		if found[filepath.ToSlash(name)] = true; strings.Contains(name, "node_modules") {
			t.Errorf("%s is not ours", name)
		}
	}
	for name, want := range map[string]bool{"../../README.md": true, "../../connector/rules/FORMAT.md": true,
		"../../CHANGELOG.md": false} {
		if found[name] != want {
			t.Errorf("%s: %t", name, found[name])
		}
	}
}
