package main

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The writer commits a row every writeInterval. It gives up an answer after writePatience and
// connects again, so its longest pause is the database's own.
const (
	writeInterval = 20 * time.Millisecond
	writePatience = time.Second
)

// writer is a client of the database alone, which takes the same way as the nodes.
type writer struct {
	url    string
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	wrote   []int64    // rows whose commit was confirmed
	pauses  pauses
	lastErr error
}

func startWriter(ctx context.Context, url string) *writer {
	w := &writer{url: url}
	ctx, w.cancel = context.WithCancel(ctx)
	w.done.Go(func() { w.run(ctx) })
	return w
}

func (w *writer) run(ctx context.Context) {
	var conn *pgx.Conn
	for ctx.Err() == nil {
		err := w.write(ctx, &conn)
		if err != nil && conn != nil {
			drop(conn)
			conn = nil
		}
		w.mu.Lock()
		w.lastErr = err
		w.mu.Unlock()
		select {
		case <-time.After(writeInterval):
		case <-ctx.Done():
		}
	}
	if conn != nil {
		drop(conn)
	}
}

// drop closes a connection that may not answer.
func drop(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = conn.Close(ctx)
}

func (w *writer) write(ctx context.Context, conn **pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	if *conn == nil {
		config, err := pgx.ParseConfig(w.url)
		if err != nil {
			return err
		}
		config.ConnectTimeout = writePatience / 4 // for each host
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		if *conn, err = pgx.ConnectConfig(ctx, config); err != nil {
			*conn = nil
			return err
		}
	}
	var id int64
	if err := (*conn).QueryRow(ctx, "insert into drill_writes (wrote) values ('in time') returning id").Scan(&id); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote = append(w.wrote, id)
	w.pauses.tick(time.Now())
	return nil
}

// stop stops the writer, and returns what it was confirmed and its longest pause.
func (w *writer) stop() (wrote []int64, longest time.Duration) {
	w.cancel()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wrote, w.pauses.longest
}

// restart measures pauses from now on.
func (w *writer) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pauses = pauses{last: time.Now()}
}

// back returns when the longest pause has ended.
func (w *writer) back() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pauses.ended
}

// pauses finds the longest time between two events.
type pauses struct {
	last    time.Time
	longest time.Duration
	ended   time.Time // end of the longest
}

func (p *pauses) tick(now time.Time) {
	if !p.last.IsZero() {
		if pause := now.Sub(p.last); pause > p.longest {
			p.longest, p.ended = pause, now
		}
	}
	p.last = now
}
