package alert

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/mark"
)

// away is a place for marks that has not answered for a while.
type away struct {
	mark.Remote
	lasts atomic.Int64 // nanoseconds
}

func (*away) Put(mark.Log, pglog.Mark) {}

func (*away) Get(context.Context, mark.Log) (m pglog.Mark, err error) { return m, nil }

func (*away) Slugs() []string { return nil }

func (*away) Run(context.Context, func(context.Context, mark.Log, pglog.Mark) (bool, error)) {}

func (a *away) Away() time.Duration { return time.Duration(a.lasts.Load()) }

func (*away) Lag() time.Duration { return 0 }

// TestMarksAway checks that an alert says when object storage does not take marks.
func TestMarksAway(t *testing.T) {
	t.Parallel()
	place := &away{}
	rooms := servertest.Rooms(t, servertest.Pool(t, pgtest.URL(t)), func(o *room.Options) {
		o.Marks = mark.Memory()
		o.Marks.Remote = place
	})
	if _, err := rooms.Create(t.Context(), room.Config{Slug: "sale"}); err != nil {
		t.Fatal(err)
	}
	alerts := &sent{texts: map[webhook.AlertKind]string{}, wants: []webhook.AlertKind{webhook.AlertDatabase}}
	w := New(Options{Rooms: rooms, Sender: alerts, Issuers: none, Log: slog.New(slog.DiscardHandler)})
	place.lasts.Store(int64(maxLag))
	if w.check(t.Context()); len(alerts.texts) != 0 {
		t.Errorf("alerts %q", alerts.texts)
	}
	place.lasts.Store(int64(2 * maxLag))
	w.check(t.Context())
	if text := alerts.texts[webhook.AlertDatabase]; !strings.Contains(text, "object storage for 60 seconds") {
		t.Errorf("alert %q", text)
	}
}
