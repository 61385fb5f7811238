// Package doctest extracts code from documents, so that tests can run what readers are asked to
// type: code blocks, the commands in them, and commands within sentences.
package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Read returns the text of a file.
func Read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Block is a code block of a document.
type Block struct {
	Language string // language such as sh; empty: none
	Text     string // lines, each with its newline
}

// block matches a fenced block that starts at the beginning of a line.
var block = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// Blocks returns the code blocks of a language in a document, in order. It fails the test if there
// are none.
func Blocks(t testing.TB, file, language string) []string {
	t.Helper()
	var list []string
	for _, b := range All(Read(t, file)) {
		if b.Language == language {
			list = append(list, b.Text)
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s has no block of %q", file, language)
	}
	return list
}

// All returns all code blocks of a text.
func All(text string) []Block {
	var list []Block
	for _, found := range block.FindAllStringSubmatch(text, -1) {
		list = append(list, Block{found[1], found[2]})
	}
	return list
}

// Commands returns the commands of an sh block, one per line, without comments and with
// continuation lines joined.
func Commands(text string) []string {
	var list []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line, _, _ = strings.Cut(line, "    #")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// span matches code within a sentence.
var span = regexp.MustCompile("`([^`\n]+)`")

// Spans returns the code within the sentences of a text.
func Spans(text string) []string {
	var list []string
	for _, found := range span.FindAllStringSubmatch(block.ReplaceAllString(text, ""), -1) {
		list = append(list, found[1])
	}
	return list
}

// Documents returns the documents below a folder, except those of installed npm packages, and
// historical ones such as changelogs.
func Documents(t testing.TB, folder string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return fs.SkipDir
		case filepath.Ext(path) == ".md" && d.Name() != "CHANGELOG.md":
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
