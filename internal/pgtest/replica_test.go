//go:build unix

package pgtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/internal/pgtest"
)

// TestFailover checks that a detached standby lacks later changes after its promotion, that the
// switch connects to it, and that a restored backup has the state of its time.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	at := pgtest.NewSwitch(t, primary)
	count := func() (n int) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), at.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if err := conn.QueryRow(t.Context(), "select count(*) from seen").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	primary.Exec("create table seen (n int)")
	backup := primary.Backup()
	primary.Exec("insert into seen values (1)")
	standby := primary.Replica("standby")
	standby.Detach()
	primary.Exec("insert into seen values (2)")
	if n := count(); n != 2 {
		t.Errorf("the primary has %d rows", n)
	}
	standby.Promote()
	at.Lead(standby)
	if n := count(); n != 1 {
		t.Errorf("the standby that lagged has %d rows", n)
	}
	primary.Restore(backup)
	at.Lead(primary)
	if n := count(); n != 0 {
		t.Errorf("the restored primary has %d rows", n)
	}
	at.Cut()
	if conn, err := pgx.Connect(t.Context(), at.URL()); err == nil {
		_ = conn.Close(t.Context())
		t.Error("the switch is cut, and connects")
	}
}

// TestSynchronousCommit checks that a commit waits for a named standby that does not respond. A
// cancelled commit stays in the primary, and servers must expect that.
func TestSynchronousCommit(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Replica("standby")
	primary.Exec("create table seen (n int)")
	primary.Synchronous("standby")
	primary.Exec("insert into seen values (1)")
	standby.Pause()
	defer standby.Resume()
	conn, err := pgx.Connect(t.Context(), primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	waiting, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := conn.Exec(waiting, "insert into seen values (2)"); err == nil {
		t.Error("the commit does not wait")
	}
	for n := 0; n != 2; { // until the backend has processed the cancellation
		primary.Get("select count(*) from seen", &n)
	}
}
