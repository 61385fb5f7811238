package outsider

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/evidence"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// sent records alerts.
type sent map[webhook.AlertKind]string

func (s sent) Wants(uuid.UUID, webhook.AlertKind) bool { return true }

func (s sent) Send(_ context.Context, _ uuid.UUID, kind webhook.AlertKind, slug, text string) error {
	s[kind] = slug + ": " + text
	return nil
}

// pages are a room's public pages, which may be away.
type pages struct {
	verifier.Source
	read int
	away error
}

func (p *pages) Checkpoint(ctx context.Context) ([]byte, error) {
	p.read++
	if p.away != nil {
		return nil, p.away
	}
	return p.Source.Checkpoint(ctx)
}

func (p *pages) Tile(ctx context.Context, t audit.Tile) ([]byte, error) { return p.Source.Tile(ctx, t) }

// scene is a room that nobody is called in, and a watch of it.
type scene struct {
	t      *testing.T
	url    string // of the database
	room   *room.Room
	pages  *pages
	alerts sent
	watch  *Watch
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, url: pgtest.URL(t), alerts: sent{}}
	rooms := servertest.Rooms(t, servertest.Pool(t, s.url))
	starts := time.Now().Add(time.Hour)
	r, err := rooms.Create(t.Context(), room.Config{Slug: "sale", Starts: &starts})
	if err != nil {
		t.Fatal(err)
	}
	s.room, s.pages = r, &pages{Source: r.Transcript}
	s.watch = New(Options{Rooms: rooms, Late: time.Second, Dir: t.TempDir(), Log: servertest.Log(t),
		Open: func(url string) (verifier.Source, error) {
			if url != r.URL {
				return nil, errors.New("another room: " + url)
			}
			return s.pages, nil
		}})
	s.watch.sender = s.alerts
	return s
}

// join has visitors join.
func (s *scene) join(n int) {
	s.t.Helper()
	for range n {
		var secret [fairness.SecretSize]byte
		_, _ = rand.Read(secret[:])
		if _, err := s.room.Join(s.t.Context(), fairness.NewTicket(s.room.Origin, secret)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// until has the watch check the room until ok reports true.
func (s *scene) until(what string, ok func(x *subject) bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s.watch.round(s.t.Context())
		x := s.watch.subjects[s.room.ID]
		if x != nil && ok(x) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("not within a minute: %s", what)
		}
		if x != nil {
			x.due = time.Time{}
		}
	}
}

// TestTampered changes an entry in the database after the watch has read it, as whoever may change the tables can. The
// history that is shown from then on does not continue the earlier one, which everybody who watches can see.
func TestTampered(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]uint64{"whole": maxFirst, "checkpoints alone": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.watch.first = first
			s.join(3)
			s.until("the room is read", func(x *subject) bool { return x.head() == 4 })
			if s.watch.Counts() != (Counts{Entries: 4}) || s.watch.Alarm("sale") != "" || len(s.alerts) > 0 {
				t.Errorf("counts %+v, alerts %q", s.watch.Counts(), s.alerts)
			}
			owner, err := pgx.Connect(t.Context(), s.url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = owner.Close(context.Background()) }()
			if _, err := owner.Exec(t.Context(), `update log_bundles set entries =
				set_byte(entries, octet_length(entries) - 3, get_byte(entries, octet_length(entries) - 3) # 1)
				where first = (select min(first) from log_bundles where room_id = $1) and room_id = $1`, s.room.ID); err != nil {
				t.Fatal(err)
			}
			s.join(1)
			s.until("a mismatch, which is checked again soon", func(x *subject) bool {
				return x.failed != "" && time.Until(x.due) <= checkInterval
			})
			s.until("the alarm", func(*subject) bool { return s.watch.Alarm("sale") != "" })
			if n := s.watch.Counts(); n.Alarms != 1 {
				t.Errorf("counts %+v", n)
			}
			if text := s.alerts[webhook.AlertForkSeen]; !strings.HasPrefix(text, "sale: Everybody who watches this room can see") {
				t.Errorf("alerts %q", s.alerts)
			}
			files, err := filepath.Glob(filepath.Join(s.watch.Dir, "sale-unproven-*.json"))
			if err != nil || len(files) != 1 {
				t.Fatalf("files of evidence %q, %v", files, err)
			}
			content, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			if _, err := evidence.Parse(content); err != nil {
				t.Errorf("the evidence: %v", err)
			}
		})
	}
}

// TestLarge follows a room by its checkpoints alone once all rooms together have grown too large.
func TestLarge(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.watch.mostAtAll = 5
	s.join(3)
	s.until("the room is read", func(x *subject) bool { return x.head() == 4 })
	s.join(3)
	s.until("only checkpoints are followed", func(x *subject) bool { return x.whole == nil && x.head() == 7 })
	s.join(1)
	s.until("the room is read", func(x *subject) bool { return x.head() == 8 })
	if s.watch.Alarm("sale") != "" {
		t.Errorf("alarm: %s", s.watch.Alarm("sale"))
	}
}

// TestUnread: a room that cannot be read raises no alarm, is tried rarely, and is counted.
func TestUnread(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.pages.away = errors.New("away")
	s.watch.round(t.Context())
	s.watch.round(t.Context())
	x := s.watch.subjects[s.room.ID]
	if x == nil || s.pages.read != 1 || time.Until(x.due) < retryInterval/2 {
		t.Fatalf("read %d times, next %+v", s.pages.read, x)
	}
	x.read = x.read.Add(-2 * unreadAfter)
	s.watch.round(t.Context())
	if n := s.watch.Counts(); n != (Counts{Unread: 1}) {
		t.Errorf("counts %+v", n)
	}
	s.pages.away = nil
	x.due = time.Time{}
	s.until("the room is read", func(x *subject) bool { return x.head() == 1 })
	if n := s.watch.Counts(); n != (Counts{Entries: 1}) {
		t.Errorf("counts %+v", n)
	}
}

// TestEnded reads an ended room to its end, and no further.
func TestEnded(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.until("the room is read", func(x *subject) bool { return x.head() == 1 })
	if err := s.room.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.until("the end is read", func(x *subject) bool { return x.isOver })
	read := s.pages.read
	s.watch.subjects[s.room.ID].due = time.Time{}
	s.watch.round(t.Context())
	if s.pages.read != read {
		t.Error("an ended room is read again")
	}
}
