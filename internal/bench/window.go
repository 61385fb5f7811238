package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/migrations"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// node runs Proofline's rooms in this process, on a separate PostgreSQL.
type node struct {
	rooms *room.Rooms
	pool  *pgxpool.Pool
	stop  func() error
}

// masterKey seals the keys of the rooms in one run.
var masterKey = keys.NewMasterKey()

// startNode starts a node whose database is in a subdirectory of dir.
func startNode(ctx context.Context, dir, name string) (*node, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pg, err := localpg.Start(ctx, localpg.Config{Dir: filepath.Join(dir, name), Log: log})
	if err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, pg.URL()); err != nil {
		return nil, err
	}
	config, err := pglog.PoolConfig(pg.URLOf(pglog.Role))
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	key, err := keys.ParseMasterKey(masterKey)
	if err != nil {
		return nil, err
	}
	rooms := room.New(room.Options{
		Logs: pglog.NewStore(pool), Store: pgroom.NewStore(pool), MasterKey: key, PublicURL: "http://bench.example",
		Log: log,
	})
	run, cancel := context.WithCancel(ctx)
	go rooms.Run(run)
	return &node{rooms, pool, func() error {
		limit, done := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer done()
		err := rooms.Close(limit)
		cancel()
		pool.Close()
		return errors.Join(err, pg.Stop(limit))
	}}, nil
}

// window draws windows of many visitors while others join the next one.
func (b *bench) window() error {
	n, err := startNode(b.ctx, b.dir, "window")
	if err != nil {
		return err
	}
	defer func() { _ = n.stop() }()
	for i := range b.runs {
		if err := b.drawWindow(n, fmt.Sprintf("window-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// drawWindow measures one draw, in a new room.
func (b *bench) drawWindow(n *node, slug string) error {
	length := time.Duration(b.visitors)*40*time.Microsecond + 5*time.Second
	opens := time.Now().Add(time.Second).Truncate(time.Millisecond)
	starts := opens.Add(24 * time.Hour)
	r, err := n.rooms.Create(b.ctx, room.Config{
		Slug: slug, Opens: &opens, Starts: &starts, Windows: []room.WindowRule{{Length: room.Duration(length)}},
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Until(opens.Add(50 * time.Millisecond)))
	people := newBatch()
	joined, err := join(b.ctx, r, people, b.visitors, opens.Add(length-time.Second))
	if err != nil {
		return err
	}
	say("  %d visitors are in the window", joined)
	time.Sleep(time.Until(opens.Add(length - 500*time.Millisecond)))
	ctx, cancel := context.WithCancel(b.ctx)
	latencies := make(chan []time.Duration)
	go func() { latencies <- trickle(ctx, r, newBatch(), 2_000) }()
	known, err := b.drawn(r, opens.Add(length), people.ticket(0), uint64(joined))
	if err != nil {
		cancel()
		<-latencies
		return err
	}
	began, from := time.Now(), r.Snapshot().Counts.Assigned
	for r.Snapshot().Counts.Assigned < uint64(joined) && b.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(began)
	cancel()
	waits := slices.Sorted(slices.Values(<-latencies))
	b.add(
		reading{goal: windowKnown, value: milliseconds(known), size: joined},
		reading{goal: windowAssigns, value: float64(uint64(joined)-from) / took.Seconds(), size: joined},
		reading{goal: windowJoin50, value: milliseconds(waits[len(waits)/2])},
		reading{goal: windowJoin99, value: milliseconds(waits[len(waits)*99/100])},
	)
	return nil
}

// join makes visitors join, many at a time, until the deadline.
func join(ctx context.Context, r *room.Room, n batch, people int, until time.Time) (int, error) {
	var next, joined atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	for range 2_000 {
		wg.Go(func() {
			for time.Now().Before(until) && failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= people {
					return
				}
				if _, err := r.Join(ctx, n.ticket(i)); err != nil {
					failed.Store(&err)
					return
				}
				joined.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(joined.Load()), nil
}

// trickle makes visitors join at a steady rate until ctx is done, and returns the latencies.
func trickle(ctx context.Context, r *room.Room, n batch, rate int) []time.Duration {
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		wg.Go(func() {
			if _, err := r.Join(context.WithoutCancel(ctx), n.ticket(i)); err == nil {
				mu.Lock()
				defer mu.Unlock()
				waits = append(waits, time.Since(due))
			}
		})
	}
	wg.Wait()
	return waits
}

// drawn waits for the draw of the first window, and returns the time from the window's end, which
// precedes its freeze, until readers knew every position.
func (b *bench) drawn(r *room.Room, closed time.Time, t fairness.Ticket,
	people uint64) (time.Duration, error) {
	for r.Snapshot().Counts.Drawn < people {
		if b.ctx.Err() != nil {
			return 0, b.ctx.Err()
		}
		time.Sleep(200 * time.Microsecond)
	}
	now := r.Now()
	if _, ok := r.Standing(t); !ok {
		return 0, errors.New("a ticket is not known after the draw")
	}
	return now.Sub(closed), nil
}

// replay loads a room that window has left in the database.
func (b *bench) replay() error {
	for range b.runs {
		if err := b.replayOnce(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) replayOnce() error {
	n, err := startNode(b.ctx, b.dir, "window")
	if err != nil {
		return err
	}
	defer func() { _ = n.stop() }()
	runtime.GC()
	began := time.Now()
	r, err := n.rooms.Get(b.ctx, "window-0")
	if err != nil {
		return fmt.Errorf("%w (measure window, too)", err)
	}
	took := time.Since(began)
	b.add(reading{goal: replayRate, value: float64(r.Snapshot().Size) / took.Seconds()})
	return nil
}
