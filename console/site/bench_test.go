package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/site"
)

// BenchmarkSigned measures a connector's poll for 1,000 rules, with and without a cached note.
func BenchmarkSigned(b *testing.B) {
	s := newServer(b)
	list := make([]string, 1000)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name": "%d", "when": {"path": {"prefix": "/%d"}}, "action": "block"}`, i, i)
	}
	s.create(owner, "shop", `{"version": 1, "rules": [`+strings.Join(list, ",")+`]}`)
	ask := func(b *testing.B, sites *site.Sites) {
		b.Helper()
		if _, err := sites.Signed(b.Context(), connector, "shop"); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("uncached", func(b *testing.B) {
		for b.Loop() {
			ask(b, s.again())
		}
	})
	b.Run("cached", func(b *testing.B) {
		for b.Loop() {
			ask(b, s.Sites)
		}
	})
}

// BenchmarkSeen measures repeated reports, which write nothing.
func BenchmarkSeen(b *testing.B) {
	s := newServer(b)
	n := site.Node{ID: nodeID(1), Kind: "proxy", Counts: map[string]uint64{"passed": 1}}
	for b.Loop() {
		if err := s.Seen(b.Context(), owner.Org, n); err != nil {
			b.Fatal(err)
		}
	}
}
