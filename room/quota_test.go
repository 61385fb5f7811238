package room

import (
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/pgroom"
)

// TestQuota limits the rooms, visitors, streams and entries of an organization, and those of no other.
func TestQuota(t *testing.T) {
	t.Parallel()
	rs := node(t, pgtest.URL(t), newMaster(t))
	ctx := t.Context()
	share := rs.Quotas.Of(pgroom.MainOrg)
	set := func(q pgroom.Quota) {
		t.Helper()
		if err := share.Set(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	set(pgroom.Quota{Rooms: 1})
	r := create(t, rs, Config{Slug: "first", Beacon: "none", Windows: []WindowRule{{Length: Duration(time.Minute)}}})
	if _, err := rs.Create(ctx, Config{Slug: "second", Beacon: "none"}); !errors.Is(err, ErrQuota) {
		t.Errorf("a second room: %v", err)
	}
	join := func() error {
		_, err := r.Join(ctx, newVisitor(r).ticket)
		return err
	}
	if err := join(); err != nil {
		t.Fatal(err)
	}
	set(pgroom.Quota{Waiting: 1})
	if err := join(); !errors.Is(err, ErrFull) || !r.IsFull() {
		t.Errorf("a second visitor: %v, full %v", err, r.IsFull())
	}
	set(pgroom.Quota{Entries: 2})
	if err := join(); !errors.Is(err, ErrFull) {
		t.Errorf("a third entry: %v", err)
	}
	set(pgroom.Quota{Entries: 3, Waiting: 2, Rooms: 2, Streams: 1})
	if err := join(); err != nil {
		t.Errorf("within the quota: %v", err)
	}
	done, err := r.Quota.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Quota.OpenStream(); !errors.Is(err, ErrStreams) {
		t.Errorf("a second stream: %v", err)
	}
	u, err := share.Usage(ctx)
	if err != nil || u.OpenRooms != 1 || u.InLine != 2 || u.Open != 1 || u.Stored != 3 {
		t.Errorf("%+v, %v", u, err)
	}
	done()
	if done, err = r.Quota.OpenStream(); err != nil {
		t.Fatalf("after the first stream: %v", err)
	}
	done()
	if err := r.End(ctx); err != nil {
		t.Fatal(err)
	}
	set(pgroom.Quota{Rooms: 1})
	eventually(t, "the end is in the record", func() bool {
		_, err := rs.Create(ctx, Config{Slug: "second", Beacon: "none"})
		return err == nil
	})
}
