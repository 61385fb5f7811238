package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

// TestArchiveDoc runs the commands of the document about archives: a room becomes files, which verify from a web server
// that knows nothing of Proofline.
func TestArchiveDoc(t *testing.T) {
	t.Parallel()
	_, room, _ := fork(t)
	dir := t.TempDir()
	if err := room.Write(filepath.Join(dir, "r", "sale")); err != nil {
		t.Fatal(err)
	}
	published := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer published.Close()
	archive := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(dir, "archive"))))
	defer archive.Close()
	where := strings.NewReplacer("https://queue.example.com", published.URL, "https://archive.example.com", archive.URL,
		"./archive", filepath.Join(dir, "archive"))
	ran := 0
	for _, block := range doctest.Blocks(t, "../../docs/operate/ARCHIVE.md", "sh") {
		for _, command := range doctest.Commands(block) {
			line, isOurs := strings.CutPrefix(where.Replace(command), "proofline-verify ")
			if !isOurs { // the tests of proofline run its commands
				continue
			}
			args := strings.Fields(line)
			if args[0] == "audit" {
				args = append(args, "--no-keep")
			}
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), args, &stdout, &stderr, func(string) string { return "" })
			if code != exitVerified {
				t.Errorf("%s exits with %d:\n%s%s", command, code, &stdout, &stderr)
			}
			ran++
		}
	}
	if ran != 4 {
		t.Errorf("the document has %d commands", ran)
	}
}
