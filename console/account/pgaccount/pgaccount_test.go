package pgaccount_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var mainOrg = uuid.MustParse("00000000-0000-8000-8000-000000000001")

// store returns a store with the permissions of the server's role, and its pool.
func store(t *testing.T) (*pgaccount.Store, *pgxpool.Pool) {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	return pgaccount.NewStore(pool), pool
}

// owner creates a person who owns an organization.
func owner(t *testing.T, s *pgaccount.Store, org uuid.UUID, email string) pgaccount.Person {
	t.Helper()
	now := time.Now()
	p := pgaccount.Person{ID: uuid.New(), Email: email, Name: "Name", Password: "phc", Created: now}
	if err := s.People.AddIdentified(t.Context(), p, "issuer", email, org, "owner"); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGrants checks which operations the server's role may not perform.
func TestGrants(t *testing.T) {
	t.Parallel()
	_, pool := store(t)
	for _, statement := range []string{
		"delete from organizations", "update former_identities set hash = null", "drop table sessions", "truncate tokens",
		"alter table members add x int",
	} {
		_, err := pool.Exec(t.Context(), statement)
		const insufficientPrivilege = "42501"
		if pg := (*pgconn.PgError)(nil); !errors.As(err, &pg) || pg.Code != insufficientPrivilege {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestMainOrganization checks that every server has the main organization.
func TestMainOrganization(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	o, err := s.Organizations.BySlug(t.Context(), "main")
	if err != nil || o.ID != mainOrg || o.RequireFactor {
		t.Errorf("%+v, %v", o, err)
	}
	err = s.Organizations.Add(t.Context(), pgaccount.Organization{ID: uuid.New(), Slug: "main", Name: "Other",
		Created: time.Now()})
	if !errors.Is(err, pgaccount.ErrExists) {
		t.Errorf("again: %v", err)
	}
	if err := s.Organizations.Set(t.Context(), uuid.New(), "x", false); !errors.Is(err, pgaccount.ErrNotFound) {
		t.Errorf("another: %v", err)
	}
}

// TestAttemptTogether checks that no concurrent attempt is lost.
func TestAttemptTogether(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	now := time.Now()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			err := s.Attempts.Attempt(t.Context(), [32]byte{1}, now, func(a pgaccount.Attempt) (pgaccount.Attempt, error) {
				a.Level++
				return a, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	refused := errors.New("refused")
	err := s.Attempts.Attempt(t.Context(), [32]byte{1}, now, func(a pgaccount.Attempt) (pgaccount.Attempt, error) {
		if a.Level != 20 {
			t.Errorf("level %v", a.Level)
		}
		a.Level = 99
		return a, refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	_ = s.Attempts.Attempt(t.Context(), [32]byte{1}, now, func(a pgaccount.Attempt) (pgaccount.Attempt, error) {
		if a.Level != 20 {
			t.Errorf("level %v after a refusal", a.Level)
		}
		return a, nil
	})
}

// TestAcceptTogether uses one link many times at once: it works once.
func TestAcceptTogether(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, now := t.Context(), time.Now()
	hash := make([]byte, 32)
	v := pgaccount.Invitation{Org: mainOrg, ID: uuid.New(), Role: "viewer", InvitedBy: "x", Created: now,
		Expires: now.Add(time.Hour)}
	if err := s.Invitations.Add(ctx, v, hash); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			p := pgaccount.Person{ID: uuid.New(), Email: string(rune('a'+i)) + "@example.com", Name: "N",
				Password: "phc", Created: now}
			_, err := s.Invitations.Accept(context.WithoutCancel(ctx), hash, pgaccount.Joining{Person: p, New: true}, now)
			errs <- err
		}()
	}
	worked := 0
	for range cap(errs) {
		if err := <-errs; err == nil {
			worked++
		} else if !errors.Is(err, pgaccount.ErrNotFound) {
			t.Error(err)
		}
	}
	rows, _ := pool.Query(ctx, "select email from people")
	people, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if worked != 1 || err != nil || len(people) != 1 {
		t.Errorf("worked %d times, made %v, %v", worked, people, err)
	}
}

// TestHolder checks that a session stays in its organization while the person is a member, and then
// moves to another one.
func TestHolder(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, now := t.Context(), time.Now()
	p := owner(t, s, mainOrg, "a@example.com")
	owner(t, s, mainOrg, "b@example.com")
	other := pgaccount.Organization{ID: uuid.New(), Slug: "other", Name: "Other", Created: now}
	if err := s.Organizations.Add(ctx, other); err != nil {
		t.Fatal(err)
	}
	session := pgaccount.Session{ID: uuid.New(), Hash: make([]byte, 32), Person: p.ID, Org: mainOrg, Created: now,
		Seen: now, Confirmed: now}
	if err := s.Sessions.Add(ctx, session); err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		h, err := s.Sessions.Holder(ctx, session.Hash, now.Add(-time.Hour), now.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return h.OrgSlug + " " + h.Role
	}
	if got := holder(); got != "main owner" {
		t.Errorf("in %s", got)
	}
	if err := s.Sessions.SetOrg(ctx, session.ID, other.ID); !errors.Is(err, pgaccount.ErrNotFound) {
		t.Errorf("to an organization of others: %v", err)
	}
	hash := append(make([]byte, 31), 1)
	if err := s.Invitations.Add(ctx, pgaccount.Invitation{Org: other.ID, ID: uuid.New(), Role: "viewer", Created: now,
		Expires: now.Add(time.Hour)}, hash); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Invitations.Accept(ctx, hash, pgaccount.Joining{Person: p}, now); err != nil {
		t.Fatal(err)
	}
	if err := s.Sessions.SetOrg(ctx, session.ID, other.ID); err != nil {
		t.Fatal(err)
	}
	if got := holder(); got != "other viewer" {
		t.Errorf("in %s", got)
	}
	if err := s.Members.Remove(ctx, other.ID, p.ID, now); err != nil { // other organizations may have no owner
		t.Fatal(err)
	}
	if got := holder(); got != "main owner" {
		t.Errorf("in %s", got)
	}
	if _, err := s.Sessions.Holder(ctx, session.Hash, now.Add(time.Second), now.Add(-time.Hour)); !errors.Is(err,
		pgaccount.ErrNotFound) {
		t.Errorf("begun too long ago: %v", err)
	}
	if _, err := s.Sessions.Holder(ctx, session.Hash, now.Add(-time.Hour), now.Add(time.Second)); !errors.Is(err,
		pgaccount.ErrNotFound) {
		t.Errorf("seen too long ago: %v", err)
	}
}

// TestRemovePerson checks that an account ends with its last organization, and that only an invitation lets its
// identity in again.
func TestRemovePerson(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, now := t.Context(), time.Now()
	owner(t, s, mainOrg, "owner@example.com")
	other := pgaccount.Organization{ID: uuid.New(), Slug: "other", Name: "Other", Created: now}
	if err := s.Organizations.Add(ctx, other); err != nil {
		t.Fatal(err)
	}
	p := pgaccount.Person{ID: uuid.New(), Email: "leaves@example.com", Name: "Leaves", Created: now}
	if err := s.People.AddIdentified(ctx, p, "https://id.example.com", "subject", mainOrg, "viewer"); err != nil {
		t.Fatal(err)
	}
	invite := func(org uuid.UUID, first byte, j pgaccount.Joining) error {
		hash := append([]byte{first}, make([]byte, 31)...)
		if err := s.Invitations.Add(ctx, pgaccount.Invitation{Org: org, ID: uuid.New(), Role: "viewer", Created: now,
			Expires: now.Add(time.Hour)}, hash); err != nil {
			t.Fatal(err)
		}
		_, err := s.Invitations.Accept(ctx, hash, j, now)
		return err
	}
	if err := invite(other.ID, 1, pgaccount.Joining{Person: p}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sessions.Add(ctx, pgaccount.Session{ID: uuid.New(), Hash: make([]byte, 32), Person: p.ID, Org: mainOrg,
		Created: now, Seen: now, Confirmed: now}); err != nil {
		t.Fatal(err)
	}
	if err := s.Factors.SetCodes(ctx, p.ID, [][]byte{make([]byte, 32)}); err != nil {
		t.Fatal(err)
	}
	left := func() (n int) {
		for _, table := range []string{"people", "members", "identities", "recovery_codes", "sessions"} {
			var rows int
			if err := pool.QueryRow(ctx, "select count(*) from "+table+" where person_id = $1", p.ID).Scan(&rows); err != nil {
				t.Fatal(err)
			}
			n += rows
		}
		return n
	}
	if err := s.Members.Remove(ctx, mainOrg, p.ID, now); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 5 {
		t.Errorf("%d rows of a member of another organization, want 5", n)
	}
	if err := s.Members.Remove(ctx, other.ID, p.ID, now); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 0 {
		t.Errorf("%d rows of an account that was removed", n)
	}
	again := pgaccount.Person{ID: uuid.New(), Email: p.Email, Name: "Returns", Created: now}
	err := s.People.AddIdentified(ctx, again, "https://id.example.com", "subject", mainOrg, "viewer")
	if !errors.Is(err, pgaccount.ErrFormer) {
		t.Errorf("the identity makes an account again: %v", err)
	}
	if err := invite(mainOrg, 2, pgaccount.Joining{Person: p}); !errors.Is(err, pgaccount.ErrNotFound) {
		t.Errorf("an invitation is accepted with an account that was removed meanwhile: %v", err)
	}
	if err := invite(mainOrg, 3, pgaccount.Joining{Person: again, New: true}); err != nil {
		t.Error(err)
	}
	former := func() (removed []time.Time) {
		rows, _ := pool.Query(ctx, "select removed_at from former_identities")
		removed, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
		if err != nil {
			t.Fatal(err)
		}
		return removed
	}
	if removed := former(); len(removed) != 1 {
		t.Fatalf("removed at %v, want one identity", removed)
	}
	if err := s.People.AddIdentity(ctx, again.ID, "https://id.example.com", "subject"); err != nil {
		t.Error(err)
	}
	if removed := former(); len(removed) != 0 {
		t.Errorf("an identity that is linked again counts as removed at %v", removed)
	}
	if _, err := pool.Exec(ctx, `insert into former_identities (hash, removed_at)
		values (sha256('proofline/identity/v1\000https://id.example.com\000subject'::bytea), $1)`, now); err != nil {
		t.Fatal(err)
	}
	later := now.Add(24 * time.Hour).Truncate(time.Second)
	if err := s.Members.Remove(ctx, mainOrg, again.ID, later); err != nil {
		t.Fatal(err)
	}
	if removed := former(); len(removed) != 1 || !removed[0].Equal(later) {
		t.Errorf("removed at %v, want the latest removal, %v", removed, later)
	}
}

// TestRemoveTogether removes a person from two organizations at once: the account ends.
func TestRemoveTogether(t *testing.T) {
	t.Parallel()
	s, pool := store(t)
	ctx, now := t.Context(), time.Now()
	p := owner(t, s, mainOrg, "a@example.com")
	owner(t, s, mainOrg, "b@example.com")
	orgs := []uuid.UUID{mainOrg, uuid.New()}
	if err := s.Organizations.Add(ctx, pgaccount.Organization{ID: orgs[1], Slug: "other", Name: "O", Created: now}); err != nil {
		t.Fatal(err)
	}
	hash := make([]byte, 32)
	if err := s.Invitations.Add(ctx, pgaccount.Invitation{Org: orgs[1], ID: uuid.New(), Role: "viewer", Created: now,
		Expires: now.Add(time.Hour)}, hash); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Invitations.Accept(ctx, hash, pgaccount.Joining{Person: p}, now); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, org := range orgs {
		all.Go(func() {
			if err := s.Members.Remove(ctx, org, p.ID, now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	var people int
	if err := pool.QueryRow(ctx, "select count(*) from people where person_id = $1", p.ID).Scan(&people); err != nil || people != 0 {
		t.Errorf("%d accounts of the person, %v", people, err)
	}
}
