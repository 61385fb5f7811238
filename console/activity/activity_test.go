package activity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var (
	owner   = account.Actor{Kind: account.Person, Name: "a@example.com", Org: account.MainOrg, Scopes: account.Admin}
	another = account.Actor{Kind: account.Person, Name: "b@example.com", Org: uuid.New(), Scopes: account.Admin}

	errRefused = errors.New("refused")
)

// newLog returns the activity log of a new database.
func newLog(t *testing.T) *activity.Log {
	t.Helper()
	return activity.New(activity.Options{
		Store:     pgactivity.NewStore(servertest.Pool(t, pgtest.URL(t))),
		IsRefusal: func(err error) bool { return errors.Is(err, errRefused) }, Log: servertest.Log(t),
	})
}

// TestOutcomes checks that an entry exists while its operation runs, and has the outcome afterwards.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	l, ctx := newLog(t), t.Context()
	latest := func() activity.Outcome {
		t.Helper()
		page, err := l.Entries(ctx, owner, "", uuid.Nil, 1)
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		return page.Entries[0].Outcome
	}
	for want, result := range map[activity.Outcome]error{
		activity.Done: nil, activity.Refused: errRefused, activity.Failed: errors.New("failed"),
	} {
		err := l.Do(ctx, owner, "do", "x", nil, func() error {
			if got := latest(); got != "" {
				t.Errorf("outcome %q while the operation runs", got)
			}
			return result
		})
		if !errors.Is(err, result) || latest() != want {
			t.Errorf("%v: %v, outcome %q, want %q", result, err, latest(), want)
		}
	}
}

// TestPages checks that pages have the entries of one organization, newest first.
func TestPages(t *testing.T) {
	t.Parallel()
	l, ctx := newLog(t), t.Context()
	for _, verb := range []string{"a", "b", "c"} {
		if err := l.Record(ctx, owner, verb, "x", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Record(ctx, another, "other", "x", nil); err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for before := uuid.Nil; ; {
		page, err := l.Entries(ctx, owner, "x", before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			verbs = append(verbs, e.Verb)
		}
		if before = page.Next; before == uuid.Nil {
			break
		}
	}
	if got := strings.Join(verbs, " "); got != "c b a" {
		t.Errorf("entries %s", got)
	}
	if _, err := l.Entries(ctx, account.Actor{}, "", uuid.Nil, 0); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("without the scope: %v", err)
	}
}

// TestStorable checks that text that the database cannot store is replaced, and nothing else.
func TestStorable(t *testing.T) {
	t.Parallel()
	l, ctx := newLog(t), t.Context()
	detail := map[string]any{"backslash": `\u0000`, "nul": "a\x00b"}
	if err := l.Record(ctx, owner, "store", "a\x00\xff", detail); err != nil {
		t.Fatal(err)
	}
	page, err := l.Entries(ctx, owner, "a\uFFFD\uFFFD", uuid.Nil, 0)
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("%+v, %v", page, err)
	}
	const want = `{"nul": "a\uFFFDb", "backslash": "\\u0000"}`
	if got := string(page.Entries[0].Detail); got != strings.ReplaceAll(want, `\uFFFD`, "\uFFFD") {
		t.Errorf("detail %s, want %s", got, want)
	}
}
