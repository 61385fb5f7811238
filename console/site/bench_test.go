package site_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/site"
)

// BenchmarkSigned is what a connector costs that asks whether there are new
// rules, of 1,000 rules: signed anew, or before.
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
	b.Run("anew", func(b *testing.B) {
		for b.Loop() {
			ask(b, s.again())
		}
	})
	b.Run("before", func(b *testing.B) {
		for b.Loop() {
			ask(b, s.Sites)
		}
	})
}

// BenchmarkSeen is what a report costs, of those each second that write nothing.
func BenchmarkSeen(b *testing.B) {
	s := newServer(b)
	n := site.Node{ID: nodeID(1), Kind: "proxy", Counts: map[string]uint64{"passed": 1}}
	for b.Loop() {
		if err := s.Seen(b.Context(), owner.Org, n); err != nil {
			b.Fatal(err)
		}
	}
}
