package site_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

func TestSeen(t *testing.T) {
	t.Parallel()
	s := site.New(site.Options{Store: pgsite.NewStore(servertest.Pool(t, pgtest.URL(t)))})
	n := site.Node{ID: "AAAAAAAAAAAAAAAAAAAAAA", Site: "shop", Serial: 1, Kind: "proxy", Version: "1.0", Counts: map[string]uint64{"passed": 1<<63 + 5}}
	for range 2 {
		if err := s.Seen(t.Context(), account.MainOrg, n); err != nil {
			t.Fatal(err)
		}
	}
	n.Serial, n.Counts = 2, nil
	if err := s.Seen(t.Context(), account.MainOrg, n); err != nil {
		t.Fatal(err)
	}
	list, err := s.Store.Connectors(t.Context(), account.MainOrg, "shop")
	if err != nil || len(list) != 1 || list[0].Serial != 2 {
		t.Errorf("connectors %+v, %v", list, err)
	}
	if list, err := s.Store.Connectors(t.Context(), uuid.New(), "shop"); err != nil || len(list) != 0 {
		t.Errorf("connectors of another organization %+v, %v", list, err)
	}
	if err := s.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
}
