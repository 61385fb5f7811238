package console

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestActWords: whatever packages note as an act has words for people.
func TestActWords(t *testing.T) {
	t.Parallel()
	verb := regexp.MustCompile(`(?:[rR]ecord|recordEverywhere|factorChanged|\.act|\.control)\([^"\n]*"([a-z]+(?:[.-][a-z-]+)+)"`)
	found := 0
	for _, pattern := range []string{"../../console/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range verb.FindAllSubmatch(text, -1) {
				found++
				if actWords[string(match[1])] == "" {
					t.Errorf("%s: no words for %s", file, match[1])
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d verbs are found", found)
	}
}
