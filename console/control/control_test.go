package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/console/activity/pgactivity"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

var (
	owner = account.Actor{
		Kind: account.Person, ID: uuid.MustParse("00000000-0000-8000-8000-0000000000aa"), Name: "owner@example.com",
		Org: account.MainOrg, Scopes: account.Owner.Scopes(),
	}
	viewer = account.Actor{
		Kind: account.Person, Name: "viewer@example.com", Org: account.MainOrg, Scopes: account.Viewer.Scopes(),
	}
	puller  = account.Actor{Kind: account.Token, Name: "backend", Org: account.MainOrg, Scopes: account.Pull}
	another = account.Actor{
		Kind: account.Person, Name: "owner@example.org", Org: uuid.MustParse("00000000-0000-8000-8000-0000000000bb"),
		Scopes: account.Owner.Scopes(),
	}
)

// newControl returns the operations on rooms of a new database.
func newControl(t *testing.T) *control.Rooms {
	t.Helper()
	pool := servertest.Pool(t, pgtest.URL(t))
	rooms := servertest.Rooms(t, pool, func(o *room.Options) { o.PublicURL = "http://127.0.0.1:8080" })
	log := servertest.Log(t)
	owns := func(_ context.Context, org uuid.UUID, host string) (bool, error) {
		return org == account.MainOrg && host == "queue.example.com", nil
	}
	return control.New(control.Options{
		Rooms: rooms, Store: pgcontrol.NewStore(pool), Records: pgroom.NewStore(pool), OwnsHost: owns, Log: log,
		Activity: activity.New(activity.Options{
			Store: pgactivity.NewStore(pool), IsRefusal: control.IsRefusal, Log: log,
		}),
	})
}

func create(t *testing.T, d *control.Rooms, actor account.Actor, slug string) *room.Room {
	t.Helper()
	r, err := d.Create(t.Context(), actor, room.Config{Slug: slug}, control.Place{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// operations returns all operations that change a room.
func operations(t *testing.T, d *control.Rooms, slug string) map[string]func(account.Actor) error {
	ctx, title := t.Context(), "New"
	second := func(_ any, err error) error { return err }
	return map[string]func(account.Actor) error{
		"amend": func(a account.Actor) error {
			return second(d.Amend(ctx, a, slug, room.Amendment{Title: &title}, nil))
		},
		"pause":         func(a account.Actor) error { return second(d.Pause(ctx, a, slug)) },
		"freeze-claims": func(a account.Actor) error { return second(d.FreezeClaims(ctx, a, slug)) },
		"resume":        func(a account.Actor) error { return second(d.Resume(ctx, a, slug)) },
		"end":           func(a account.Actor) error { return second(d.End(ctx, a, slug)) },
		"revoke": func(a account.Actor) error {
			return second(d.Revoke(ctx, a, slug, fairness.Ticket{}, fairness.Revoked))
		},
		"rotate":    func(a account.Actor) error { _, _, err := d.RotateKeys(ctx, a, slug); return err },
		"archive":   func(a account.Actor) error { return second(d.Archive(ctx, a, slug, true)) },
		"duplicate": func(a account.Actor) error { return second(d.Drafts.Duplicate(ctx, a, slug)) },
	}
}

// TestScopes checks that each operation needs its scope, and that rooms of other organizations do
// not exist for an actor.
func TestScopes(t *testing.T) {
	t.Parallel()
	d := newControl(t)
	r := create(t, d, owner, "sale")
	size := r.Snapshot().Size
	for name, do := range operations(t, d, "sale") {
		for _, a := range []account.Actor{viewer, puller, {}} {
			want := account.ErrForbidden
			if a.Org != account.MainOrg {
				want = room.ErrNotFound
			}
			if err := do(a); !errors.Is(err, want) {
				t.Errorf("%s by %q: %v, want %v", name, a.Name, err, want)
			}
		}
		if err := do(another); !errors.Is(err, room.ErrNotFound) {
			t.Errorf("%s by another organization: %v", name, err)
		}
	}
	for name, do := range operations(t, d, "nothing") {
		if err := do(owner); !errors.Is(err, room.ErrNotFound) {
			t.Errorf("%s of an unknown room: %v", name, err)
		}
	}
	if _, err := d.Create(t.Context(), viewer, room.Config{Slug: "mine"}, control.Place{}); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a viewer creates: %v", err)
	}
	if _, err := d.Create(t.Context(), another, room.Config{Slug: "sale"}, control.Place{}); !errors.Is(err, room.ErrExists) {
		t.Errorf("another organization takes the slug: %v", err)
	}
	if _, err := d.Room(t.Context(), puller, "sale"); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a backend reads: %v", err)
	}
	if _, err := d.Room(t.Context(), viewer, "sale"); err != nil {
		t.Errorf("a viewer reads: %v", err)
	}
	if _, err := d.SetPull(t.Context(), puller, "sale", true); err != nil {
		t.Errorf("a backend switches to pull mode: %v", err)
	}
	if _, err := d.Pull(t.Context(), puller, "sale", 1); err != nil {
		t.Errorf("a backend calls: %v", err)
	}
	if _, err := d.Pull(t.Context(), viewer, "sale", 1); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a viewer calls: %v", err)
	}
	if r.Snapshot().Size != size || r.Config().Title != "sale" {
		t.Error("the room was changed")
	}
	log, err := d.Activity.Entries(t.Context(), another, "", uuid.Nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range log.Entries {
		if a.Verb != "room.create" || a.Outcome != activity.Refused {
			t.Errorf("the other organization has the activity log entry %+v", a)
		}
	}
	if _, err := d.Activity.Entries(t.Context(), puller, "", uuid.Nil, 0); !errors.Is(err, account.ErrForbidden) {
		t.Errorf("a backend reads the activity log: %v", err)
	}
}

// TestActivity checks that every operation is recorded with its actor and outcome, and that changes
// that concern fairness are in the transcript.
func TestActivity(t *testing.T) {
	t.Parallel()
	d := newControl(t)
	r := create(t, d, owner, "sale")
	rate := uint32(120)
	message := room.MessageChange{Message: room.Message{Texts: map[string]string{"en": "Sorry."}}}
	for _, do := range []func() (*room.Room, error){
		func() (*room.Room, error) { return d.Pause(t.Context(), owner, "sale") },
		func() (*room.Room, error) { return d.Resume(t.Context(), owner, "sale") },
		func() (*room.Room, error) {
			return d.Amend(t.Context(), owner, "sale", room.Amendment{Outflow: &room.OutflowChange{PerMinute: &rate}, Message: &message}, nil)
		},
		func() (*room.Room, error) { return d.End(t.Context(), owner, "sale") },
		func() (*room.Room, error) { return d.Archive(t.Context(), owner, "sale", true) },
	} {
		if _, err := do(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Revoke(t.Context(), owner, "sale", fairness.Ticket{}, fairness.RevokedBot); !errors.Is(err, room.ErrTicketUnknown) {
		t.Errorf("revoked an unknown ticket: %v", err)
	}
	var got []string
	for before := uuid.Nil; ; { // page by page
		page, err := d.Activity.Entries(t.Context(), viewer, "sale", before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Entries {
			got = append(got, a.Verb+" "+string(a.Outcome))
			if a.Actor != owner.Name || a.ActorID != owner.ID || a.ActorKind != "person" || time.Since(a.At).Abs() > time.Minute {
				t.Errorf("entry %+v", a)
			}
		}
		if before = page.Next; before == uuid.Nil {
			break
		}
	}
	want := []string{"room.revoke refused", "room.archive done", "room.end done", "room.amend done", "room.resume done", "room.pause done", "room.create done"}
	if !slices.Equal(got, want) {
		t.Errorf("entries\n%q, want\n%q", got, want)
	}
	if n := r.Snapshot().Size; n != 6 { // room, pause, resume, outflow, message, end
		t.Errorf("the transcript has %d entries", n)
	}
}

// TestLostUpdate checks that of concurrent changes to the same version one succeeds.
func TestLostUpdate(t *testing.T) {
	t.Parallel()
	d := newControl(t)
	r := create(t, d, owner, "sale")
	seen := r.Config()
	same := func(c room.Config) bool { return c.Title == seen.Title && c.Outflow == seen.Outflow }
	amend := func(title string) error {
		_, err := d.Amend(t.Context(), owner, "sale", room.Amendment{Title: &title}, same)
		return err
	}
	results := make(chan error)
	for i := range 8 { // concurrently: one of them is first
		go func() { results <- amend(fmt.Sprintf("Title %d", i)) }()
	}
	changed := 0
	for range 8 {
		switch err := <-results; {
		case err == nil:
			changed++
		case !errors.Is(err, control.ErrChanged):
			t.Error(err)
		}
	}
	if changed != 1 {
		t.Errorf("%d changes of the same version", changed)
	}
}

// TestDrafts creates, completes, publishes and deletes drafts.
func TestDrafts(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	draft, err := d.Drafts.Save(ctx, owner, uuid.Nil, 0, "", json.RawMessage(`{"slug":"Sale!","title":"Sale"}`))
	if err != nil || draft.Title != "Sale" || len(draft.Problems) != 1 || draft.Problems[0].Field != "slug" {
		t.Fatalf("draft %+v, %v", draft, err)
	}
	if _, err := d.Drafts.Publish(ctx, owner, draft.ID, draft.Version); err == nil {
		t.Error("a draft with problems is published")
	}
	next, err := d.Drafts.Save(ctx, owner, draft.ID, draft.Version, "queue.example.com", json.RawMessage(`{"slug":"sale","title":"Sale"}`))
	if err != nil || next.Version != 2 || len(next.Problems) != 0 {
		t.Fatalf("draft %+v, %v", next, err)
	}
	if _, err := d.Drafts.Save(ctx, owner, draft.ID, draft.Version, "", json.RawMessage(`{}`)); !errors.Is(err, control.ErrChanged) {
		t.Errorf("an old version is saved: %v", err)
	}
	if _, err := d.Drafts.Publish(ctx, owner, draft.ID, draft.Version); !errors.Is(err, control.ErrChanged) {
		t.Errorf("an old version is published: %v", err)
	}
	for _, text := range []string{
		``, `[]`, `null`, `"` + strings.Repeat("x", 300<<10) + `"`,
		`{"title":"\u0000"}`, `{"title":"\ud800"}`, "{\"title\":\"\xff\"}", `{"max_waiting":1e999999}`,
	} {
		if _, err := d.Drafts.Save(ctx, owner, uuid.Nil, 0, "", json.RawMessage(text)); !isInvalid(err) {
			t.Errorf("draft of %.20q: %v", text, err)
		}
	}
	if _, err := d.Drafts.Save(ctx, owner, uuid.Nil, 0, "a\x00b", json.RawMessage(`{}`)); !isInvalid(err) {
		t.Errorf("draft of an odd host: %v", err)
	}
	for _, a := range []account.Actor{another, {Org: account.MainOrg}} {
		want := control.ErrDraftUnknown
		if a.Kind == 0 {
			want = account.ErrForbidden
		}
		if _, err := d.Drafts.Get(ctx, a, draft.ID); !errors.Is(err, want) {
			t.Errorf("draft read by %q: %v", a.Name, err)
		}
		if err := d.Drafts.Delete(ctx, a, draft.ID); !errors.Is(err, want) {
			t.Errorf("draft deleted by %q: %v", a.Name, err)
		}
	}
	if list, err := d.Drafts.List(ctx, another); err != nil || len(list) != 0 {
		t.Errorf("another organization has %d drafts, %v", len(list), err)
	}
	r, err := d.Drafts.Publish(ctx, owner, draft.ID, next.Version)
	if err != nil || r.URL != "http://queue.example.com:8080/r/sale" || r.Origin != "queue.example.com:8080/r/sale" {
		t.Fatalf("published %+v, %v", r, err)
	}
	if list, err := d.Drafts.List(ctx, owner); err != nil || len(list) != 0 {
		t.Errorf("%d drafts are left, %v", len(list), err)
	}
	if _, err := d.Create(ctx, another, room.Config{Slug: "other"}, control.Place{Host: "queue.example.com"}); err == nil {
		t.Error("another organization publishes under the host")
	}
}

// TestDuplicate checks that a copy keeps the hour and the weekday.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	opens := time.Now().Add(8 * time.Second).Truncate(time.Second).UTC() // leaves a busy machine time to create the room
	starts := opens.Add(time.Hour)
	if _, err := d.Create(ctx, owner, room.Config{Slug: "weekly", Opens: &opens, Starts: &starts}, control.Place{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(opens) + 50*time.Millisecond)
	draft, err := d.Drafts.Duplicate(ctx, owner, "weekly")
	if err != nil || draft.Slug != "weekly-copy" {
		t.Fatalf("draft %+v, %v", draft, err)
	}
	c := draft.Config()
	week := 7 * 24 * time.Hour
	if !c.Opens.Equal(opens.Add(week)) || !c.Starts.Equal(starts.Add(week)) || !c.Windows[1].From.Equal(starts.Add(week)) {
		t.Errorf("the copy opens at %v and starts at %v; the room did at %v", c.Opens, c.Starts, opens)
	}
}

// TestList checks pages, search and archiving of an organization's rooms.
func TestList(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	for i := range 5 {
		create(t, d, owner, fmt.Sprintf("room-%d", i))
	}
	create(t, d, another, "theirs")
	var got []string
	cursor := ""
	for {
		page, err := d.List(ctx, viewer, control.Filter{Max: 2, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.List {
			got = append(got, s.Slug)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if want := []string{"room-4", "room-3", "room-2", "room-1", "room-0"}; !slices.Equal(got, want) {
		t.Errorf("rooms %q, want %q", got, want)
	}
	if _, err := d.List(ctx, viewer, control.Filter{Cursor: "!"}); err == nil {
		t.Error("an invalid cursor is accepted")
	}
	if _, err := d.Archive(ctx, owner, "room-3", true); !errors.Is(err, control.ErrNotEnded) {
		t.Errorf("a room that has not ended is archived: %v", err)
	}
	if _, err := d.End(ctx, owner, "room-3"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Archive(ctx, owner, "room-3", true); err != nil {
		t.Fatal(err)
	}
	of := uuid.New()
	copied, err := d.Create(ctx, owner, room.Config{Slug: "room-2-rehearsal"}, control.Place{RehearsalOf: &of})
	if err != nil {
		t.Fatal(err)
	}
	if page, err := d.List(ctx, viewer, control.Filter{}); err != nil || len(page.List) != 5 {
		t.Errorf("with a rehearsal: %d rooms, %v", len(page.List), err)
	}
	if err := copied.End(ctx); err != nil {
		t.Fatal(err)
	}
	for ended := false; !ended; time.Sleep(10 * time.Millisecond) { // the room's ticker stores the end
		record, err := d.Records.Get(ctx, copied.Slug)
		if err != nil {
			t.Fatal(err)
		}
		ended = record.Ended != nil
	}
	for _, test := range []struct {
		filter control.Filter
		want   int
	}{{control.Filter{}, 4}, {control.Filter{Archived: true}, 2}, {control.Filter{Search: " ROOM-2 "}, 1}, {control.Filter{Search: "theirs"}, 0}, {control.Filter{Search: "%"}, 0}} {
		if page, err := d.List(ctx, viewer, test.filter); err != nil || len(page.List) != test.want {
			t.Errorf("%+v: %d rooms, %v, want %d", test.filter, len(page.List), err, test.want)
		}
	}
}

// TestAmendManyAtOnce checks that more conditional amendments than there are connections do not
// deadlock, although each holds a connection while it needs another.
func TestAmendManyAtOnce(t *testing.T) {
	t.Parallel()
	d := newControl(t)
	for _, slug := range []string{"one", "two"} {
		create(t, d, owner, slug)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const many = 40
	failed := make(chan error, many)
	for i := range many {
		go func() {
			title := fmt.Sprint("Sale ", i)
			_, err := d.Amend(ctx, owner, []string{"one", "two"}[i%2], room.Amendment{Title: &title}, func(room.Config) bool { return true })
			failed <- err
		}()
	}
	for range many {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyDrafts checks the limit on drafts.
func TestManyDrafts(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	save := func(actor account.Actor) error {
		_, err := d.Drafts.Save(ctx, actor, uuid.Nil, 0, "", json.RawMessage(`{}`))
		return err
	}
	for range pgcontrol.MaxDrafts {
		if err := save(owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := save(owner); !account.IsLimit(err) {
		t.Errorf("one draft too many: %v", err)
	}
	if err := save(another); err != nil {
		t.Errorf("draft of another organization: %v", err)
	}
}

// TestActivityOfAnything checks that invalid input is refused as invalid, although it is recorded in
// the activity log before it is validated.
func TestActivityOfAnything(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	for _, c := range []room.Config{{Slug: "a\x00b"}, {Slug: "a\xffb"}, {Slug: "sale", Title: "a\x00b"}} {
		if _, err := d.Create(ctx, owner, c, control.Place{}); !isInvalid(err) {
			t.Errorf("%q, %q: %v", c.Slug, c.Title, err)
		}
	}
	log, err := d.Activity.Entries(ctx, owner, "", uuid.Nil, 0)
	if err != nil || len(log.Entries) != 3 || log.Entries[0].Outcome != activity.Refused || log.Entries[2].Object != "a\uFFFDb" || !strings.Contains(string(log.Entries[0].Detail), "a\uFFFDb") {
		t.Errorf("%+v, %v", log, err)
	}
}

func isInvalid(err error) bool {
	_, ok := errors.AsType[*invalid.Error](err)
	return ok
}

// TestRests checks that a simulation uses at most half a processor while visitors are in line.
func TestRests(t *testing.T) {
	t.Parallel()
	d, ctx := newControl(t), t.Context()
	r := create(t, d, owner, "sale")
	if d.IsServing() {
		t.Error("visitors are reported in line")
	}
	if _, err := r.Join(ctx, fairness.Ticket(uuid.MustParse("00000000-0000-8000-8000-0000000000cc"))); err != nil {
		t.Fatal(err)
	}
	if !d.IsServing() {
		t.Error("no visitors are reported in line")
	}
	if _, err := d.End(ctx, owner, "sale"); err != nil {
		t.Fatal(err)
	}
	if d.IsServing() {
		t.Error("visitors are reported in line after the end")
	}
	rest, began := control.Rests(), time.Now()
	for range 3 {
		time.Sleep(10 * time.Millisecond)
		rest(0, 0, 0)
	}
	if took := time.Since(began); took < 60*time.Millisecond {
		t.Errorf("%v for 30 ms of work", took)
	}
}
