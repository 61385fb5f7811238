package serve

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
)

// TestReportRelays: relays of another chain, and relays that do not respond, are logged at the start, before
// any draw waits for them.
func TestReportRelays(t *testing.T) {
	t.Parallel()
	own, err := local.New(local.NewKey(), local.Config{ID: "local", Genesis: 1, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	ours := httptest.NewServer(own.Handler())
	defer ours.Close()
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, c := range map[string]struct {
		chain beacon.Chain
		url   string
		want  string
	}{
		"right":   {own.Chain(), ours.URL, "level=INFO.*beacon relays answer.*chain=local"},
		"another": {beacon.Quicknet(), ours.URL, "level=ERROR.*--beacon-chain.*chain=quicknet"},
		"dead":    {beacon.Quicknet(), dead.URL, "level=WARN.*draws wait.*--beacon-relays none.*chain=quicknet"},
	} {
		var logged bytes.Buffer
		f := serveFlags{Config: server.Config{Log: slog.New(slog.NewTextHandler(&logged, nil))}}
		client := &relay.Client{URLs: []string{c.url}, Chain: c.chain}
		m := relay.Monitor{Client: client, OnChange: func(err error) { f.reportRelays(t.Context(), client, err) }}
		_ = m.Check(t.Context())
		if !regexp.MustCompile(c.want).Match(logged.Bytes()) {
			t.Errorf("%s: logged %q, want %q", name, logged.String(), c.want)
		}
	}
}
