package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/migrations"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/verifier"
)

// node is the product's rooms in this process, on their own PostgreSQL.
type node struct {
	rooms *room.Rooms
	pool  *pgxpool.Pool
	stop  func() error
}

// masterKey seals the keys of the rooms in one run.
var masterKey = keys.NewMasterKey()

func (b *bench) node(name string) (*node, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pg, err := localpg.Start(b.ctx, localpg.Config{Dir: filepath.Join(b.dir, name), Log: log})
	if err != nil {
		return nil, err
	}
	if err := migrations.Up(b.ctx, pg.URL()); err != nil {
		return nil, err
	}
	config, err := pglog.PoolConfig(pg.URLOf(pglog.Role))
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(b.ctx, config)
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
	ctx, cancel := context.WithCancel(b.ctx)
	go rooms.Run(ctx)
	return &node{rooms, pool, func() error {
		limit, done := context.WithTimeout(context.WithoutCancel(b.ctx), 30*time.Second)
		defer done()
		err := rooms.Close(limit)
		cancel()
		pool.Close()
		return errors.Join(err, pg.Stop(limit))
	}}, nil
}

// window draws a window of a million visitors while others join the next one.
func (b *bench) window() error {
	n, err := b.node("window")
	if err != nil {
		return err
	}
	defer func() { _ = n.stop() }()
	length := time.Duration(b.visitors)*40*time.Microsecond + 5*time.Second
	opens := time.Now().Add(time.Second).Truncate(time.Millisecond)
	starts := opens.Add(24 * time.Hour)
	r, err := n.rooms.Create(b.ctx, room.Config{
		Slug: "window", Opens: &opens, Starts: &starts, Windows: []room.WindowRule{{Length: room.Duration(length)}},
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Until(opens.Add(50 * time.Millisecond)))
	joined, err := join(b.ctx, r, 0, b.visitors, opens.Add(length-time.Second))
	if err != nil {
		return err
	}
	b.say("  %d people are in the window", joined)
	time.Sleep(time.Until(opens.Add(length - 500*time.Millisecond)))
	ctx, cancel := context.WithCancel(b.ctx)
	latencies := make(chan []time.Duration)
	go func() { latencies <- trickle(ctx, r, 2_000) }()
	known, err := b.drawn(r, opens.Add(length), uint64(joined))
	if err != nil {
		cancel()
		return err
	}
	began, from := time.Now(), r.Snapshot().Counts.Assigned
	for r.Snapshot().Counts.Assigned < uint64(joined) && b.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(began)
	cancel()
	waits := <-latencies
	slices.Sort(waits)
	p99 := waits[len(waits)*99/100]
	rate := float64(uint64(joined)-from) / took.Seconds()
	b.add(known <= 500*time.Millisecond, fmt.Sprintf("positions of %d people known after the freeze", joined),
		ms(known), "within 500 ms")
	b.add(rate >= 150_000, "assignments appended", fmt.Sprintf("%.0f/s", rate), "150000/s or more")
	b.add(p99 < 100*time.Millisecond, fmt.Sprintf("%d joins during that", len(waits)),
		fmt.Sprintf("p50 %s, p99 %s, max %s", ms(waits[len(waits)/2]), ms(p99),
			ms(waits[len(waits)-1])), "p99 under 100 ms")
	return nil
}

// join has visitors join, many at a time, until the deadline.
func join(ctx context.Context, r *room.Room, run, people int, until time.Time) (int, error) {
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
				if _, err := r.Join(ctx, ticket(run, i)); err != nil {
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

// trickle has visitors join at a steady rate until ctx is done, and returns the latencies.
func trickle(ctx context.Context, r *room.Room, rate int) []time.Duration {
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for i := 0; ctx.Err() == nil; i++ {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		wg.Go(func() {
			if _, err := r.Join(context.WithoutCancel(ctx), ticket(1, i)); err == nil {
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
func (b *bench) drawn(r *room.Room, closed time.Time, people uint64) (time.Duration, error) {
	for r.Snapshot().Counts.Drawn < people {
		if b.ctx.Err() != nil {
			return 0, b.ctx.Err()
		}
		time.Sleep(200 * time.Microsecond)
	}
	now := r.Now()
	if _, ok := r.Standing(ticket(0, 0)); !ok {
		return 0, errors.New("a ticket is not known after the draw")
	}
	return now.Sub(closed), nil
}

// replay loads the room that window created.
func (b *bench) replay() error {
	n, err := b.node("window")
	if err != nil {
		return err
	}
	defer func() { _ = n.stop() }()
	runtime.GC()
	began := time.Now()
	r, err := n.rooms.Get(b.ctx, "window")
	if err != nil {
		return err
	}
	took := time.Since(began)
	rate := float64(r.Snapshot().Size) / took.Seconds()
	b.add(rate >= 500_000, fmt.Sprintf("replay of %d entries at start", r.Snapshot().Size),
		fmt.Sprintf("%.0f/s (%s)", rate, took.Round(time.Millisecond)), "500000/s or more")
	return nil
}

// auditWindows is the number of windows in the audited room. Each has a VRF proof, a beacon round
// and three cosignatures to verify.
const auditWindows = 60

// audit runs proofline-verify on a published room.
func (b *bench) audit() error {
	keys, err := roomtest.NewKeys("bench.example/r/audit", "bench")
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "transcript")
	if err := roomtest.Generate(keys, roomtest.Dir(dir),
		roomtest.Size{Visitors: b.visitors, Windows: auditWindows}); err != nil {
		return err
	}
	args := []string{"audit", dir, "--json", "--no-keep", "--beacon", fmt.Sprintf("%x", keys.Chain.Chain().Hash())}
	for _, w := range keys.Witnesses {
		args = append(args, "--witness", w.String())
	}
	var best time.Duration
	var memory int64
	for range 3 {
		cmd := exec.CommandContext(b.ctx, b.binary("proofline-verify"), args...) //nolint:gosec // our own
		var report verifier.Report
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return err
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Level != verifier.LevelWitnessed {
			return fmt.Errorf("the audit reaches level %d: %w", report.Level, err)
		}
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = max(memory, usage.Maxrss>>10)
		}
	}
	b.add(best <= 4*time.Second, fmt.Sprintf("audit of a room of %d visitors up to level 3", b.visitors),
		best.Round(time.Millisecond).String(), "within 4 s")
	b.add(memory < 400, "memory of that audit", fmt.Sprintf("%d MiB", memory), "under 400 MiB")
	return nil
}
