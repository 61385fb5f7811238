package room

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/session"
)

// TestChangeSessions sends changes of the same sessions to both nodes at once, in opposite orders, right
// after one node admitted the visitors.
func TestChangeSessions(t *testing.T) {
	t.Parallel()
	c := quick("batch")
	c.Session = span(time.Hour)
	_, rooms := pair(t, c)
	const people = 12
	tokens := make([]string, people)
	for i := range tokens {
		_, p := enter(t, rooms[0])
		tokens[i] = p.Token
	}
	reversed := slices.Clone(tokens)
	slices.Reverse(reversed)
	var all sync.WaitGroup
	for i := range 10 {
		list := tokens
		if i%2 > 0 {
			list = reversed
		}
		all.Go(func() {
			touched, released, err := rooms[i%2].Sessions.Change(t.Context(), append(list, "none"), nil)
			if err != nil || len(released) != 0 || len(touched) != people+1 || touched[people] != session.OutcomeInvalid {
				t.Errorf("touched %v, released %v, %v", touched, released, err)
				return
			}
			if at := slices.IndexFunc(touched[:people], func(o session.Outcome) bool { return o != session.OutcomeOK }); at >= 0 {
				t.Errorf("touch %d of %d: %s", at, people, touched[at])
			}
		})
	}
	all.Wait()
	half := tokens[:people/2]
	if _, released, err := rooms[1].Sessions.Change(t.Context(), nil, half); err != nil || slices.Contains(released, session.OutcomeOver) {
		t.Fatalf("released %v, %v", released, err)
	}
	for _, r := range rooms {
		eventually(t, "released visitors are not present", func() bool { return present(r) == people-uint64(len(half)) })
	}
	if s, err := rooms[0].Sessions.Touch(t.Context(), tokens[people-1]); err != nil || s.Ends.Sub(rooms[0].Now()) < 59*time.Minute {
		t.Errorf("a visitor that was not released: %+v, %v", s, err)
	}
	if _, _, err := rooms[0].Sessions.Change(t.Context(), make([]string, session.MaxChanges), make([]string, 1)); err == nil || !strings.Contains(err.Error(), "at most 500") {
		t.Errorf("too many: %v", err)
	} else if wrong := (*invalid.Error)(nil); !errors.As(err, &wrong) {
		t.Errorf("too many: %v, want *invalid.Error", err)
	}
	auditRoom(t, rooms[0])
}

// TestManyBatches checks that batches wait for each other without holding the connections that other requests
// need, and that batches without valid passes need none.
func TestManyBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t), func(c *pgxpool.Config) { c.MaxConns = 6 }), quick("batches"))
	_, pass := enter(t, r)
	other, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended('proofline sessions ' || $1::text, 0))`, r.ID.String()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if touched, _, err := r.Sessions.Change(t.Context(), []string{pass.Token}, nil); err != nil || touched[0] != session.OutcomeOK {
				t.Errorf("touched %v, %v", touched, err)
			}
		})
	}
	eventually(t, "one waits in the database", func() bool {
		var waiting bool
		err := other.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database()))`).Scan(&waiting)
		return err == nil && waiting
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, released, err := r.Sessions.Change(ctx, nil, []string{"none"}); err != nil || released[0] != session.OutcomeInvalid {
		t.Errorf("without a pass: %v, %v", released, err)
	}
	for range 3 {
		if _, err := r.Join(ctx, newVisitor(r).ticket); err != nil {
			t.Errorf("meanwhile: %v", err)
		}
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
}

// TestTouchUnredeemed: touches do not keep the place of a pass that was never redeemed, one by one or in a
// batch, on any node. When it expires, minutes after the admission, its place is free for the next visitor,
// and it cannot be redeemed.
func TestTouchUnredeemed(t *testing.T) {
	t.Parallel()
	c := quick("unredeemed")
	c.Outflow.MaxActive, c.Session = 2, span(time.Hour)
	d, nodes, rooms := dialed(t, c)
	_, kept := admit(t, rooms[0])
	_, used := enter(t, rooms[0])
	next := newVisitor(rooms[0])
	if _, err := rooms[0].Join(t.Context(), next.ticket); err != nil {
		t.Fatal(err)
	}
	d.pass(5*time.Minute-time.Minute, nodes[:]...)
	for n, r := range rooms {
		if _, err := r.Sessions.Touch(t.Context(), kept.Token); !errors.Is(err, session.ErrPassUnredeemed) {
			t.Errorf("node %d: a touch without redeeming: %v, want session.ErrPassUnredeemed", n, err)
		}
		touched, _, err := r.Sessions.Change(t.Context(), []string{kept.Token, used.Token}, nil)
		if want := []session.Outcome{session.OutcomeUnredeemed, session.OutcomeOK}; err != nil || !slices.Equal(touched, want) {
			t.Errorf("node %d: a batch: %v, %v, want %v", n, touched, err, want)
		}
	}
	d.pass(90*time.Second, nodes[:]...) // the pass expires
	if _, err := waitClaim(t, rooms[1], next); err != nil {
		t.Errorf("the next visitor does not get the place: %v", err)
	}
	for n, r := range rooms {
		if _, err := r.Sessions.Redeem(t.Context(), kept.ID.String(), kept.Token, ""); !errors.Is(err, session.ErrPass) {
			t.Errorf("node %d: redeemed after it has expired: %v, want session.ErrPass", n, err)
		}
		eventually(t, "two visitors are present", func() bool { return present(r) == 2 })
	}
	if _, err := rooms[0].Sessions.Touch(t.Context(), kept.Token); !errors.Is(err, session.ErrSessionOver) {
		t.Errorf("a touch after the pass has expired: %v, want session.ErrSessionOver", err)
	}
	auditRoom(t, rooms[0])
}
