package site_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
)

// nodeID returns the ID of test node n.
func nodeID(n int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%016d", n))
}

func (s *server) seen(by account.Actor, n site.Node) {
	s.Helper()
	if err := s.Seen(s.Context(), by.Org, n); err != nil {
		s.Fatal(err)
	}
}

// age moves all recorded reports into the past.
func (s *server) age(by time.Duration) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), `update connectors set seen_at = seen_at - $1::interval`, by); err != nil {
		s.Fatal(err)
	}
}

// TestConnectors checks that reporting connectors are listed by site, and forgotten after a day.
func TestConnectors(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.create(owner, "shop", open)
	s.create(another, "shop", open)
	first := site.Node{ID: nodeID(1), Site: "shop", RulesVersion: 1, Kind: "proxy", Version: "1.0", Counts: map[string]uint64{"passed": math.MaxUint64, "bypassed": 0}}
	second := site.Node{ID: nodeID(2), Site: "shop", Kind: "edge", RulesVersion: 1}
	s.seen(owner, first)
	s.seen(owner, second)
	s.seen(owner, site.Node{ID: nodeID(3), Kind: "middleware"})
	list := func(by account.Actor, name string) []site.Connector {
		t.Helper()
		list, err := s.Connectors(t.Context(), by, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if !list[i].IsConnected != (time.Since(list[i].Seen) > time.Minute) {
				t.Errorf("%+v", list[i])
			}
			list[i].Seen = time.Time{}
		}
		return list
	}
	second.Counts = map[string]uint64{}
	if diff := cmp.Diff([]site.Connector{{Node: second, IsConnected: true}, {Node: first, IsConnected: true}}, list(viewer, "shop")); diff != "" {
		t.Errorf("connectors\n%s", diff)
	}
	if got := list(viewer, ""); len(got) != 1 || got[0].ID != nodeID(3) {
		t.Errorf("connectors without a site: %+v", got)
	}
	if len(list(another, "shop")) != 0 {
		t.Error("another organization sees them")
	}
	if all, err := s.AllConnectors(t.Context(), viewer); err != nil || len(all) != 3 || all[0].ID != nodeID(3) || all[0].IsBehind {
		t.Errorf("all connectors %+v, %v", all, err)
	}
	if all, err := s.AllConnectors(t.Context(), another); err != nil || len(all) != 0 {
		t.Errorf("another organization sees %+v, %v", all, err)
	}
	if _, err := s.AllConnectors(t.Context(), connector); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a connector sees others: %v", err)
	}

	// New rules: one connector adopts them at once, the other is behind.
	if _, err := s.Update(t.Context(), owner, "shop", 0, []byte(`{"version": 1}`)); err != nil {
		t.Fatal(err)
	}
	first.RulesVersion = 2
	s.seen(owner, first)
	got := list(viewer, "shop")
	if len(got) != 2 || got[0].ID != first.ID || got[0].IsBehind || !got[1].IsBehind {
		t.Errorf("after a change %+v", got)
	}
	summary := func() string {
		t.Helper()
		sites, err := s.List(t.Context(), viewer)
		if err != nil || len(sites) != 1 {
			t.Fatal(sites, err)
		}
		return fmt.Sprint(sites[0].Connectors, " behind ", sites[0].Behind)
	}
	if got := summary(); got != "2 behind 1" {
		t.Errorf("listed: %s", got)
	}
	s.age(2 * time.Minute)
	s.seen(owner, second)
	if got := summary(); got != "1 behind 1" {
		t.Errorf("listed: %s", got)
	}

	s.age(24*time.Hour - time.Minute)
	if err := s.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := list(viewer, "shop"); len(got) != 1 || got[0].ID != second.ID || got[0].IsConnected {
		t.Errorf("a day later %+v", got)
	}
}

// TestSeenSeldom checks that reports of every second are stored every five seconds.
func TestSeenSeldom(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	n := site.Node{ID: nodeID(1), Kind: "nginx", Counts: map[string]uint64{"passed": 1}}
	passed := func() uint64 {
		t.Helper()
		list, err := s.Connectors(t.Context(), owner, "")
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Counts["passed"]
	}
	s.seen(owner, n)
	n.Counts["passed"] = 2
	if s.seen(owner, n); passed() != 1 {
		t.Error("stored again at once")
	}
	s.age(5 * time.Second)
	if s.seen(owner, n); passed() != 2 {
		t.Error("not stored after five seconds")
	}
	n.Counts["passed"], n.Version = 3, "1.1"
	if s.seen(owner, n); passed() != 3 {
		t.Error("another version is not stored at once")
	}
}

// TestTooManyNodes checks that a token can make up only so many node IDs.
func TestTooManyNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	if _, err := s.pool.Exec(t.Context(), `
		insert into connectors (org_id, node, site, rules_version, kind, version, counts, seen_at)
		select $1, 'node ' || n, '', 0, 'proxy', '', '{}', now() from generate_series(1, 1999) n`, owner.Org); err != nil {
		t.Fatal(err)
	}
	last := site.Node{ID: nodeID(1), Kind: "proxy"}
	s.seen(owner, last)
	if err := s.Seen(t.Context(), owner.Org, site.Node{ID: nodeID(2), Kind: "proxy"}); !account.IsLimit(err) {
		t.Errorf("one too many: %v", err)
	}
	last.RulesVersion = 1
	s.seen(owner, last)
	s.seen(another, last)
}

func TestNodes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	many := map[string]uint64{}
	for i := range 101 {
		many[fmt.Sprint("n", i)] = 1
	}
	for field, n := range map[string]site.Node{
		"node":          {ID: nodeID(1) + "A", Kind: "proxy"},
		"site":          {ID: nodeID(1), Kind: "proxy", Site: "Shop"},
		"rules_version": {ID: nodeID(1), Kind: "proxy", RulesVersion: 1 << 63},
		"kind":          {ID: nodeID(1)},
		"version":       {ID: nodeID(1), Kind: "proxy", Version: "1\n"},
		"counts":        {ID: nodeID(1), Kind: "proxy", Counts: map[string]uint64{"Passed": 1}},
	} {
		refused(t, s.Seen(t.Context(), owner.Org, n), field, "must be")
	}
	refused(t, s.Seen(t.Context(), owner.Org, site.Node{ID: nodeID(1), Kind: "proxy", Counts: many}), "counts", "must be at most 100")
	refused(t, s.Seen(t.Context(), owner.Org, site.Node{ID: strings.Repeat("A", 21) + "B", Kind: "proxy"}), "node", "22 characters") // has unused bits set
	if list, err := s.Connectors(t.Context(), owner, ""); err != nil || len(list) != 0 {
		t.Errorf("stored %+v, %v", list, err)
	}
}
