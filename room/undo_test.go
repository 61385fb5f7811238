package room

import (
	"testing"
	"time"

	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/projection"
)

// TestFailedAppend makes the database refuse all writes for a while, as with a full disk. The room does not
// read its log again, and continues where it was.
func TestFailedAppend(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	r := create(t, rs, Config{Slug: "full", Windows: []WindowRule{{Length: Duration(200 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 60_000}})
	join := func(n int) {
		t.Helper()
		for range n {
			j, err := r.Join(t.Context(), newVisitor(r).ticket)
			if err != nil || j.Again {
				t.Fatalf("join: %+v, %v", j, err)
			}
			checkReceipt(t, r, j)
		}
	}
	join(100)
	current := func() (now *projection.Projection) {
		r.view.Read(func(p *projection.Projection, _ uint64) { now = p })
		return now
	}
	was := current()
	superuser(t, url, `alter table log_bundles add constraint full_disk check (false) not valid`)
	first := newVisitor(r)
	joined := make(chan error, 1)
	go func() { _, err := r.Join(t.Context(), first.ticket); joined <- err }()
	eventually(t, "nothing is stored", func() bool { return r.Stuck() > 0 })
	superuser(t, url, `alter table log_bundles drop constraint full_disk`)
	if err := <-joined; err != nil {
		t.Fatal(err)
	}
	join(100)
	if current() != was {
		t.Error("the room read its log anew")
	}
	eventually(t, "all visitors are called", func() bool { return r.Snapshot().Counts.Called == 201 })
	if report := auditRoom(t, r); report.Arrivals != 201 {
		t.Errorf("%d arrivals", report.Arrivals)
	}
}
