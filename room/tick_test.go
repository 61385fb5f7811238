package room

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// idle makes a room look unused for long enough to be unloaded.
func idle(r *Room) { r.lastUse.Store(time.Now().Add(-unloadAfter - time.Minute).Unix()) }

func (rs *Rooms) isLoaded(slug string) bool {
	rs.mu.RLock()
	defer rs.mu.RUnlock()
	_, ok := rs.loaded[slug]
	return ok
}

// TestUnload unloads an idle room, and loads it again when its log grows on another node or a client requests
// it, and not otherwise.
func TestUnload(t *testing.T) {
	t.Parallel()
	url, master := pgtest.URL(t), newMaster(t)
	rs, other := node(t, url, master), node(t, url, master)
	eventually(t, "the rooms of the start are loaded", rs.adopted.Load) // this one must not be among them
	r := create(t, rs, Config{Slug: "quiet"})
	elsewhere := get(t, other, "quiet")
	rs.unload()
	if !rs.isLoaded("quiet") {
		t.Fatal("a room in use was unloaded")
	}
	idle(r)
	if again := get(t, rs, "quiet"); again != r {
		t.Error("another room for the same slug")
	}
	rs.unload()
	if !rs.isLoaded("quiet") {
		t.Fatal("a room was unloaded right after a caller got it")
	}
	idle(r)
	rs.unload()
	<-r.sequencer.Done()
	rs.adopt(t.Context())
	if rs.isLoaded("quiet") {
		t.Fatal("an unloaded room was adopted")
	}
	if _, err := elsewhere.Join(t.Context(), newVisitor(r).ticket); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the room is recalled", func() bool { return rs.isLoaded("quiet") })
	busy := get(t, rs, "quiet")
	idle(busy)
	rs.unload()
	if !rs.isLoaded("quiet") {
		t.Fatal("a room with a visitor in it was unloaded")
	}
	if err := busy.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	idle(busy)
	rs.unload()
	<-busy.sequencer.Done()
	if rs.isLoaded("quiet") || rs.isUnloaded(r.ID) {
		t.Error("an ended room is watched on")
	}
	eventually(t, "the other node has ended it", func() bool { return elsewhere.Snapshot().Ended })
	if ended := get(t, rs, "quiet"); ended == busy || !ended.Snapshot().Ended {
		t.Error("the room is not read again")
	}
	auditRoom(t, get(t, rs, "quiet"))
}

// TestTakenUp creates a room whose creation was once interrupted.
func TestTakenUp(t *testing.T) {
	t.Parallel()
	var out safeBuffer
	pool, master := connect(t, pgtest.URL(t)), newMaster(t)
	rs := New(Options{
		Logs: pglog.NewStore(pool), Store: pgroom.NewStore(pool), MasterKey: master, PublicURL: publicURL,
		Log: slog.New(slog.NewTextHandler(&out, nil)),
	})
	if _, err := rs.register(t.Context(), pgroom.Owner{Org: pgroom.MainOrg}, Config{Slug: "half", Title: "Old"}); err != nil {
		t.Fatal(err)
	}
	if _, err := rs.Get(t.Context(), "half"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get: %v, want ErrNotFound", err)
	}
	rs.tick(t.Context())
	rs.adopt(t.Context())
	if !rs.Ready() || out.String() != "" {
		t.Errorf("ready %t, logged %q", rs.Ready(), out.String())
	}
	r := create(t, rs, Config{Slug: "half", Title: "New"})
	if r.Config().Title != "New" || r.Snapshot().Title != "New" {
		t.Errorf("title %q", r.Config().Title)
	}
	if _, err := rs.Create(t.Context(), Config{Slug: "half"}); !errors.Is(err, ErrExists) {
		t.Errorf("create again: %v, want ErrExists", err)
	}
	auditRoom(t, r)
	if err := rs.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestWrongMasterKey opens a room with another master key.
func TestWrongMasterKey(t *testing.T) {
	t.Parallel()
	var out safeBuffer
	url := pgtest.URL(t)
	create(t, node(t, url, newMaster(t)), Config{Slug: "key"})
	rs := node(t, url, newMaster(t))
	rs.Log = slog.New(slog.NewTextHandler(&out, nil))
	if _, err := rs.Get(t.Context(), "key"); !errors.Is(err, keys.ErrMasterKey) {
		t.Errorf("get: %v, want keys.ErrMasterKey", err)
	}
	if _, err := rs.Create(t.Context(), Config{Slug: "key"}); !errors.Is(err, keys.ErrMasterKey) {
		t.Errorf("create: %v, want keys.ErrMasterKey", err)
	}
	other := New(Options{Logs: rs.Logs, Store: rs.Store, MasterKey: rs.MasterKey, PublicURL: publicURL, Log: rs.Log})
	for range 3 {
		other.adopt(t.Context())
	}
	if n := strings.Count(out.String(), "cannot load room"); n == 0 || n > 2 { // once per node
		t.Errorf("logged %d times:\n%s", n, out.String())
	}
}

// TestStuckRoom lets one room wait for its lock: the others continue, including their checkpoints.
func TestStuckRoom(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	rs := node(t, url, newMaster(t))
	config := Config{Windows: []WindowRule{{Length: Duration(300 * time.Millisecond)}}, Outflow: Outflow{PerMinute: 60_000}}
	var rooms []*Room
	for _, slug := range []string{"stuck", "free"} {
		config.Slug = slug
		rooms = append(rooms, create(t, rs, config))
		joinMany(t, rooms[len(rooms)-1], 5) // there are entries to publish
	}
	defer lock(t, url, rooms[0])()
	go func() { _, _ = rooms[0].Join(t.Context(), newVisitor(rooms[0]).ticket) }()
	time.Sleep(700 * time.Millisecond) // the stuck room's checkpoint is due
	began := time.Now()
	for n := uint64(6); n <= 10; n++ { // each takes a tick or two
		joinMany(t, rooms[1], 1)
		eventually(t, "the free room calls", func() bool { return rooms[1].Snapshot().Counts.Called == n })
		eventually(t, "the free room publishes", func() bool { return published(t, rooms[1]) == rooms[1].Snapshot().Size })
	}
	if took := time.Since(began); took > 10*tickTimeout { // three seconds if the machine is not busy
		t.Errorf("the free room took %v", took)
	}
	if !rs.Ready() {
		t.Error("the node is not ready")
	}
}

// published returns the size of the published checkpoint.
func published(t *testing.T, r *Room) uint64 {
	t.Helper()
	signed, err := r.Transcript.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := audit.ParseCheckpoint(string(signed[:strings.Index(string(signed), "\n\n")+1]))
	if err != nil {
		t.Fatal(err)
	}
	return c.Size
}

// TestPublished checks that the checkpoint is published soon without a request.
func TestPublished(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "published"})
	if n := published(t, r); n != 1 {
		t.Errorf("published %d of the new room", n)
	}
	for n := range 3 {
		joinMany(t, r, 1)
		began := time.Now()
		eventually(t, "the join is published", func() bool { return published(t, r) == uint64(n)+2 })
		if took := time.Since(began); took > 30*time.Second { // half a second if the machine is not busy
			t.Errorf("published after %v", took)
		}
	}
}

// TestPublishedEnd checks that an audit right after the end sees it.
func TestPublishedEnd(t *testing.T) {
	t.Parallel()
	r := create(t, node(t, pgtest.URL(t), newMaster(t)), Config{Slug: "end"})
	joinMany(t, r, 1)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, want := published(t, r), r.Snapshot().Size; n != want {
		t.Errorf("published %d of %d entries", n, want)
	}
}

// TestMessageLater reads the text of a message that cannot be read at first.
func TestMessageLater(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	r := create(t, node(t, url, newMaster(t)), Config{Slug: "message"})
	superuser(t, url, `revoke select on room_messages from proofline_server`)
	if err := r.Amend(t.Context(), Amendment{Message: said("Soon")}); err != nil {
		t.Fatal(err)
	}
	if got := r.Snapshot().message; got != nil {
		t.Errorf("message %+v", got)
	}
	eventually(t, "the log is published", func() bool { return published(t, r) == r.Snapshot().Size })
	time.Sleep(3 * tickInterval) // nothing else is left to do
	superuser(t, url, `grant select on room_messages to proofline_server`)
	eventually(t, "the message is read", func() bool { return says(r, "Soon") })
}

// TestRunStops checks that everything that a server started ends with it.
func TestRunStops(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool := connect(t, url)
	rs := node(t, url, newMaster(t))
	own := New(Options{Logs: rs.Logs, Store: rs.Store, MasterKey: rs.MasterKey, PublicURL: publicURL, Log: rs.Log})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() { defer close(stopped); own.Run(ctx) }()
	r := create(t, own, Config{Slug: "stops"})
	eventually(t, "ready", own.Ready)
	cancel()
	<-stopped
	if err := own.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-r.sequencer.Done()
	if _, err := own.Get(t.Context(), "other"); !errors.Is(err, ErrStopping) {
		t.Errorf("get: %v, want ErrStopping", err)
	}
	if pool.Stat().AcquiredConns() != 0 {
		t.Error("a connection is in use")
	}
}

// TestClockElsewhere runs a room by the database's clock, which differs a lot from the node's.
func TestClockElsewhere(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			d := newDial(t)
			d.pass(ahead)
			rs := node(t, d.url, newMaster(t))
			eventually(t, "the node is ready", rs.Ready)
			if rs.clock.Now().Sub(time.Now().Add(ahead)).Abs() > time.Minute {
				t.Error("the node is ready and does not know the time")
			}
			r := create(t, rs, Config{Slug: "clock", Windows: []WindowRule{{Length: Duration(100 * time.Millisecond)}}})
			v := joinMany(t, r, 3)[0]
			if _, err := waitClaim(t, r, v); err != nil {
				t.Errorf("claim: %v", err)
			}
			if s := r.Snapshot(); s.Opens.Sub(time.Now().Add(ahead)).Abs() > time.Minute || s.Phase(r.Now()) != PhaseServing {
				t.Errorf("opens %v, phase %s", s.Opens, s.Phase(r.Now()))
			}
			auditRoom(t, r)
		})
	}
}

// TestClockJumps sets the database's clock ahead and back while a room is running: the room's time never goes
// back, joins continue, and nothing breaks.
func TestClockJumps(t *testing.T) {
	t.Parallel()
	d := newDial(t)
	rs := node(t, d.url, newMaster(t))
	r := create(t, rs, Config{Slug: "jumps", Windows: []WindowRule{{Length: Duration(time.Minute)}}, Claim: span(time.Minute), Outflow: Outflow{PerMinute: 6000}})
	first := joinMany(t, r, 2)
	d.pass(90 * time.Second) // the window is over
	eventually(t, "the first are called", func() bool { return r.Snapshot().Counts.Called == 2 })
	if _, err := waitClaim(t, r, first[0]); err != nil {
		t.Errorf("claim: %v", err)
	}
	d.pass(-time.Hour-90*time.Second, rs)
	second := joinMany(t, r, 2)
	st, _ := r.Standing(first[1].ticket)
	if st.Status != fairness.StatusCalled || st.Left <= 0 || st.Left > 60_000 {
		t.Errorf("a called ticket after the clock went back: %+v", st)
	}
	if _, err := r.Claim(t.Context(), first[1].ticket, first[1].secret); err != nil && !errors.Is(err, ErrExpired) {
		t.Errorf("claim: %v", err)
	}
	if st, _ := r.Standing(second[0].ticket); st.Joined < millis.Of(time.Now().Add(time.Minute)) {
		t.Errorf("joined %v: the room's time went back", millis.Time(st.Joined))
	}
	d.pass(time.Hour + 10*time.Minute)
	for _, v := range second {
		if _, err := waitClaim(t, r, v); err != nil {
			t.Errorf("claim: %v", err)
		}
	}
	auditRoom(t, r)
}
