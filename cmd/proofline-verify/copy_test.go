package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/roomtest"
)

// TestCopyChanged flips a bit at the beginning, in the middle and at the end of every file of a copy, and
// removes every file. The audit reports each change.
func TestCopyChanged(t *testing.T) {
	keys, err := roomtest.NewKeys("example.com/r/copy", "honest")
	if err != nil {
		t.Fatal(err)
	}
	files := roomtest.Files{}
	if err := roomtest.Generate(keys, files, roomtest.Size{Visitors: 300, Windows: 2}); err != nil {
		t.Fatal(err)
	}
	signed := files[roomtest.CheckpointPath]
	text, _, _ := strings.Cut(string(signed), "\n\n")
	w := keys.Witnesses[0]
	files[roomtest.CheckpointPath] = append(signed, w.Cosign(w.Private, text+"\n", 1_800_000_000).Line(w.Name())...)
	from, to := filepath.Join(t.TempDir(), "room"), filepath.Join(t.TempDir(), "copy")
	if err := files.Write(from); err != nil {
		t.Fatal(err)
	}
	audited := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"audit", to, "--no-keep"}, &stdout, &stderr,
			func(string) string { return "" })
		return code, stdout.String() + stderr.String()
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"fetch", from, to}, &stdout, &stderr,
		func(string) string { return "" }); code != exitVerified {
		t.Fatal(stdout.String(), stderr.String())
	}
	_, good := audited()
	if code, said := audited(); code != exitVerified || !strings.Contains(said,
		"Every file of the copy is as the room published it") {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	changes := 0
	err = filepath.WalkDir(to, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		all := [][]byte{nil, append(bytes.Clone(content), 0), content[:len(content)-1]}
		for i := range 8 {
			at := min(i*len(content)/7, len(content)-1)
			changed := bytes.Clone(content)
			changed[at] ^= 1 << (i % 8)
			all = append(all, changed)
		}
		for _, changed := range all {
			err := os.WriteFile(name, changed, 0o600)
			if changed == nil {
				err = os.Remove(name)
			}
			if err != nil {
				return err
			}
			changes++
			code, said := audited()
			missing := changed == nil && filepath.Base(name) == "vkey" &&
				strings.Contains(said, "there is no file vkey")
			if code == exitVerified && !missing {
				t.Errorf("%s, %d bytes instead of %d: exit code %d\n%s", name, len(changed), len(content), code, said)
			}
		}
		return os.WriteFile(name, content, 0o600)
	})
	if err != nil || changes < 80 {
		t.Fatalf("%d changes, %v", changes, err)
	}
	if _, said := audited(); len(said) != len(good) {
		t.Errorf("after all is as it was:\n%s", said)
	}
}
