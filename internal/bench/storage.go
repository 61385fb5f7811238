package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/rawhttp"
	"github.com/proofline/proofline/internal/wire"
)

const (
	lives         = 20_000 // number of visitors per run
	storageWindow = 5 * time.Second
)

// storage measures how much visitors add to the database and its WAL from join to release: they
// join at full speed, are drawn and called, claim, and redeem and release their passes.
func (b *bench) storage(v version) (func(int) ([]reading, error), error) {
	s, err := b.fleet.product(v, "storage")
	if err != nil {
		return nil, err
	}
	c, err := s.cluster()
	if err != nil {
		return nil, err
	}
	query := url.Values{"host": {c.socket}, "port": {"5432"}, "user": {"postgres"}, "sslmode": {"disable"}}
	conn, err := pgx.Connect(b.ctx, "postgres:///postgres?"+query.Encode())
	if err != nil {
		return nil, err
	}
	people := min(lives, b.visitors)
	return func(i int) ([]reading, error) {
		before, err := storedIn(b.ctx, conn)
		if err != nil {
			return nil, err
		}
		room, err := s.admit(fmt.Sprintf("storage-%d", i), people)
		if err != nil {
			return nil, err
		}
		admitted, err := storedIn(b.ctx, conn)
		if err != nil {
			return nil, err
		}
		if err := room.leave(); err != nil {
			return nil, err
		}
		after, err := storedIn(b.ctx, conn)
		return []reading{
			{goal: storageAdmitted, value: (admitted.tables - before.tables) / float64(people), size: people},
			{goal: storageDatabase, value: (after.tables - before.tables) / float64(people), size: people},
			{goal: storageWALAdmitted, value: (admitted.wal - before.wal) / float64(people), size: people},
			{goal: storageWAL, value: (after.wal - before.wal) / float64(people), size: people},
		}, err
	}, nil
}

// stored is a state of the database, in bytes.
type stored struct{ tables, wal float64 }

func storedIn(ctx context.Context, conn *pgx.Conn) (s stored, err error) {
	err = conn.QueryRow(ctx, `
		select sum(pg_total_relation_size(c.oid))::float8, (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`,
	).Scan(&s.tables, &s.wal)
	return s, err
}

// crowd is the visitors of a room that pass through it at full speed.
type crowd struct {
	server *server
	slug   string
	passes []wire.Pass
}

// send makes each visitor send a POST request.
func (c *crowd) send(status int, answered func(int, []byte),
	request func(i int) (path, header, body string)) error {
	g := generator{conns: 256, total: len(c.passes), answered: answered, request: func(dst []byte, i int) []byte {
		path, header, body := request(i)
		return rawhttp.AppendRequest(dst, "POST", "bench", "/r/"+c.slug+path, header, body)
	}}
	_, err := c.server.load(g, status)
	return err
}

// admit makes visitors join a new room, waits until they are called, and makes them claim.
func (s *server) admit(slug string, people int) (*crowd, error) {
	if err := s.create(map[string]any{"slug": slug, "starts": time.Now().Add(storageWindow), "claim": "1h",
		"outflow": map[string]any{"per_minute": fairness.MaxRate}}); err != nil {
		return nil, err
	}
	state, err := s.state(slug)
	if err != nil {
		return nil, err
	}
	n := newBatch()
	ticket := func(i int) string { return fairness.NewTicket(state.Origin, n.secret(i)).String() }
	c := &crowd{s, slug, make([]wire.Pass, people)}
	if err := c.send(201, nil, func(i int) (string, string, string) {
		return "/join", "", `{"ticket":"` + ticket(i) + `"}`
	}); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	if err := c.awaitCalls(); err != nil {
		return nil, err
	}
	if err := c.send(200, func(i int, body []byte) { _ = json.Unmarshal(body, &c.passes[i]) },
		func(i int) (string, string, string) {
			secret := n.secret(i)
			return "/tickets/" + ticket(i) + "/claim", "",
				`{"secret":"` + base64.RawURLEncoding.EncodeToString(secret[:]) + `"}`
		}); err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return c, nil
}

// leave makes the admitted visitors redeem their passes and release them.
func (c *crowd) leave() error {
	bearer := func(i int) string { return "Authorization: Bearer " + c.passes[i].Pass + "\r\n" }
	if err := c.send(200, nil, func(i int) (string, string, string) {
		return "/passes/" + c.passes[i].PassID + "/redeem", bearer(i), ""
	}); err != nil {
		return fmt.Errorf("redeem: %w", err)
	}
	if err := c.send(200, nil, func(i int) (string, string, string) {
		return "/sessions/release", bearer(i), ""
	}); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// awaitCalls waits until all visitors are called.
func (c *crowd) awaitCalls() error {
	for began := time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(50 * time.Millisecond) {
		state, err := c.server.state(c.slug)
		if err != nil {
			return err
		}
		var called uint64
		for _, lane := range state.Lanes {
			called += lane.Called
		}
		if called >= uint64(len(c.passes)) {
			return nil
		}
	}
	return fmt.Errorf("not all %d visitors of %s are called after two minutes", len(c.passes), c.slug)
}

// state returns the state document of a room.
func (s *server) state(slug string) (state wire.State, err error) {
	body, _, err := download(s.ctx, s.url("/r/"+slug+"/state"))
	if err != nil {
		return state, err
	}
	return state, json.Unmarshal(body, &state)
}
