package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// TestWrite lists the components of a program and of the visitor pages, without those that only
// build or test them.
func TestWrite(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "proofline-verify")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program,
		"../../../cmd/proofline-verify").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files := []string{program, "../../../web/ui/package-lock.json"}
	var first, second bytes.Buffer
	if err := write(&first, "v1", files); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	if err := write(&second, "v1", files); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same input gives other bytes")
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.Metadata.Component.Name != "proofline" || bom.Metadata.Component.Version != "v1" {
		t.Errorf("about %+v", bom.Metadata.Component)
	}
	found := map[string]cdx.Component{}
	for _, c := range *bom.Components {
		found[c.Name] = c
	}
	for _, name := range []string{"stdlib", "github.com/cloudflare/circl", "golang.org/x/mod", "@noble/curves",
		"@noble/hashes", "uplot"} {
		if c := found[name]; c.Version == "" || !strings.HasSuffix(c.PackageURL, "@"+c.Version) {
			t.Errorf("%s: %+v", name, c)
		}
	}
	for _, name := range []string{"esbuild", "typescript", "github.com/CycloneDX/cyclonedx-go",
		"github.com/google/go-cmp", "proofline-ui"} {
		if c, ok := found[name]; ok {
			t.Errorf("%+v is not shipped", c)
		}
	}
	if c := found["@noble/curves"]; !strings.HasPrefix(c.PackageURL, "pkg:npm/%40noble/curves@") || c.Hashes == nil ||
		len((*c.Hashes)[0].Value) != 128 {
		t.Errorf("%+v", c)
	}
	if !json.Valid(second.Bytes()) {
		t.Error("not JSON")
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "package-lock.json")
	if err := os.WriteFile(broken, []byte(`{"packages": {"node_modules/x": {"integrity": "sha512-?"}}}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{broken, filepath.Join(dir, "missing"), "main.go"} {
		if err := write(&bytes.Buffer{}, "v1", []string{file}); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
}
