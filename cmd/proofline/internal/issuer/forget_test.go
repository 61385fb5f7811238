package issuer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/personal"
	web "github.com/proofline/proofline/web/issuer"

	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/fairness/credential/issuer"
)

// TestForget runs an issuer's job on offers that ended long ago, lately and not at all.
func TestForget(t *testing.T) {
	t.Parallel()
	dir := issuerdir.Dir(t.TempDir())
	config := filepath.Join(t.TempDir(), "issuer.yaml")
	text := "url: https://club.example.org\nname: Club\noffers:\n"
	for _, o := range []struct{ name, list, until string }{
		{"long-ago", "old", "2020-01-01T00:00:00Z"},
		{"lately", "shared", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
		{"before-that", "shared", "2021-01-01T12:00:00+02:00"},
		{"endless", "endless", ""},
	} {
		text += fmt.Sprintf("- {name: %s, kind: signed, room: https://queue.example.com/r/derby, entry: %q, proof: list, list: %s",
			o.name, strings.Repeat("ab", 32), o.list)
		if o.until != "" {
			text += ", until: " + o.until
		}
		text += "}\n"
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := readConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Issuer(nil); err != nil {
		t.Fatal(err)
	}
	store, err := issuer.OpenStore(string(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	i, err := dir.Issuer(store)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"old", "shared", "endless", "unnamed"} {
		if _, err := dir.SetMembers(i, list, []string{"number"}, [][]string{{"17"}}, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range c.Offers {
		offer, err := o.offer(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Issue(offer, "anna", issuer.Request{Lane: "general"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.KeepPasskey([]byte("id"), issuer.Passkey{Account: "anna"}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	run := func(keep retention.Keep, settled time.Duration) {
		done, cancel := context.WithCancel(t.Context())
		cancel() // after one round
		f := &serveFlags{dir: dir, keep: keep, settled: settled, base: web.Config{Log: slog.New(slog.NewTextHandler(&logged, nil))}}
		f.current.Store(c)
		f.forget(done, store)
	}
	run(retention.Forever, 0)
	run(retention.Default, personal.Settled)
	if logged.Len() > 0 {
		t.Errorf("with forever, and at the start: %s", logged.String())
	}
	for range 2 { // the second one finds nothing
		run(retention.Default, 0)
	}
	if got := logged.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "records=2 entries_of_lists=1 passkeys=1") {
		t.Errorf("logged %s", got)
	}
	for list, want := range map[string]error{"old": fs.ErrNotExist, "shared": nil, "endless": nil, "unnamed": nil} {
		if _, err := dir.List(i, list); !errors.Is(err, want) {
			t.Errorf("list %s: %v, want %v", list, err, want)
		}
	}
	var left []string
	files, err := os.ReadDir(filepath.Join(string(dir), "issued"))
	for _, f := range files {
		name, kind := f.Name(), filepath.Ext(f.Name())
		left = append(left, name[:strings.LastIndexByte(name, '-')]+kind)
	}
	if err != nil || !slices.Equal(left, []string{"before-that.over", "endless.log", "lately.log", "long-ago.over"}) {
		t.Errorf("records of %q, %v", left, err)
	}
	offers, err := c.offers(dir, i, retention.Default)
	if err != nil || len(offers) != 2 || offers[0].Name != "lately" || offers[1].Name != "endless" {
		t.Fatalf("offers %v, %v", offers, err)
	}
	if offers[0].Until.IsZero() || offers[0].Counted.Before(time.Now()) || !offers[1].Counted.IsZero() {
		t.Errorf("counted until %v and %v", offers[0].Counted, offers[1].Counted)
	}
}
