package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
)

// TestProxyOptions: the README lists all flags of the proxy, and no others.
func TestProxyOptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../connector/proxy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Options\n")
	table, _, _ = strings.Cut(table, "\n## ")
	known := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, word := range strings.FieldsFunc(cells[1], func(r rune) bool { return strings.ContainsRune(" ,`", r) }) {
			if name, ok := strings.CutPrefix(word, "--"); ok && name != "-" {
				known[name] = true
			}
		}
	}
	flags := Command(&cli.Terminal{Env: func(string) string { return "" }}).Flags()
	flags.VisitAll(func(f *pflag.Flag) {
		if !known[f.Name] {
			t.Errorf("the README lacks --%s", f.Name)
		}
		delete(known, f.Name)
	})
	for name := range known {
		t.Errorf("the README has --%s, which does not exist", name)
	}
}

// TestDefaultState: each listen address has its own state file.
func TestDefaultState(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"": true}
	for _, listen := range []string{"127.0.0.1:8081", "127.0.0.1:8082", ":443", ":80", "[::1]:80", "[::]:80", "shop.example.com:80", "127.0.0.1:http"} {
		f := settings{listen: listen}
		got := f.defaultState("data")
		if seen[got] || strings.ContainsAny(filepath.Base(got), ":[] ") {
			t.Errorf("%s: %q", listen, got)
		}
		seen[got] = true
	}
	for _, listen := range []string{"127.0.0.1:0", "nothing"} {
		if got := (&settings{listen: listen}).defaultState("data"); got != "" {
			t.Errorf("%s: %q", listen, got)
		}
	}
}

func TestByteSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]byteSize{"1": 1, "65536": 65536, "64k": 65536, "20M": 20 << 20, "1g": 1 << 30} {
		var b byteSize
		if err := b.Set(text); err != nil || b != want {
			t.Errorf("%s: %d, %v", text, b, err)
		}
		var again byteSize
		if err := again.Set(b.String()); err != nil || again != b {
			t.Errorf("%s is written %s", text, &b)
		}
	}
	for _, text := range []string{"", "0", "-1", "k", "1.5m", "1t", "9999999999999g", "1 k", "0x10"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is %d", text, b)
		}
	}
}
