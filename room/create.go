package room

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Create makes a room of the first organization; see [Rooms.CreateFor].
func (rs *Rooms) Create(ctx context.Context, c Config) (*Room, error) {
	return rs.CreateFor(ctx, pgroom.Owner{Org: pgroom.MainOrg}, c)
}

// CreateFor makes a room: its keys, its log, and the policy as first entry.
// Errors: [*InvalidError] with everything wrong, [ErrExists].
func (rs *Rooms) CreateFor(ctx context.Context, owner pgroom.Owner, c Config) (*Room, error) {
	rs.askRelays(ctx, c)
	others, problems := rs.problems(c)
	if len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	record, err := rs.register(ctx, owner, c)
	if err != nil {
		return nil, err
	}
	r, err := rs.prepare(ctx, record)
	if err != nil {
		return nil, err
	}
	if err := r.publish(ctx, c, others); err != nil {
		return nil, fmt.Errorf("create room %s: %w", c.Slug, err)
	}
	if title := c.title(); title != record.Title { // of an earlier attempt
		if err := rs.Options.Rooms.SetTitle(ctx, r.ID, title); err != nil {
			return nil, err
		}
	}
	if s := c.Settings; s.Targets != nil || s.SignedReturn || !s.Brand.IsZero() || s.MaxWaiting > 0 || s.TimeZone != "" {
		if err := r.changeSettings(ctx, s.asChange()); err != nil {
			return nil, err
		}
	}
	rs.group.Forget(c.Slug) // whoever asked too early is told that there is no room
	loaded, err := rs.load(ctx, c.Slug)
	if err != nil {
		return nil, err
	}
	return loaded, loaded.readSettings(ctx, r.settings.Load().version) // it may have been loaded in between
}

// Problems lists what keeps a room from being made of a configuration now; that
// its slug is taken is not looked at.
func (rs *Rooms) Problems(c Config) []fairness.Problem {
	_, problems := rs.problems(c)
	return problems
}

// problems also returns those whom the room would rely on, in a policy.
func (rs *Rooms) problems(c Config) (others fairness.Policy, problems []fairness.Problem) {
	problems = rs.others(c, &others)
	if wrong, ok := errors.AsType[*InvalidError](c.checkWith(others, rs.clock.Now())); ok {
		problems = append(problems, wrong.Problems...)
	}
	return others, problems
}

// Problems lists what is wrong with a configuration of a new room, whatever the
// server: see [Rooms.Problems] for what depends on it.
func (c Config) Problems(now time.Time) []fairness.Problem {
	if wrong, ok := errors.AsType[*InvalidError](c.check(now)); ok {
		return wrong.Problems
	}
	return nil
}

// check finds the problems that do not depend on the room's identity, which
// does not exist yet.
func (c Config) check(now time.Time) error { return c.checkWith(fairness.Policy{}, now) }

// checkWith is check with those whom the room relies on, in a policy.
func (c Config) checkWith(p fairness.Policy, now time.Time) error {
	p.Created, p.Origin, p.LogKey, p.VRFKey = fromTime(now), "x", "x+", [fairness.PublicKeySize]byte{2}
	_, err := c.withDefaults(now).policy(p)
	return err
}

// register stores slug, title and keys. A room that was registered before but
// whose policy was never published is taken up again.
func (rs *Rooms) register(ctx context.Context, owner pgroom.Owner, c Config) (pgroom.Room, error) {
	id := pgroom.RoomID(c.Slug)
	record := pgroom.Room{ID: id, Slug: c.Slug, Title: c.title(), Owner: owner}
	_, record.Origin, _ = strings.Cut(rs.URL(record), "://")
	sealed, err := newKeys(rs.MasterKey, id)
	if err != nil {
		return record, err
	}
	isNew, err := rs.Options.Rooms.Insert(ctx, record, sealed, func(tx pgx.Tx) error { return rs.Logs.Create(ctx, tx, id) })
	if err == nil && !isNew {
		record, err = rs.Options.Rooms.Get(ctx, c.Slug)
		if err == nil && record.Org != owner.Org {
			err = ErrExists
		}
		return record, err
	}
	return record, err
}

// publish appends the policy to the empty log; [ErrExists] when it is not.
func (r *Room) publish(ctx context.Context, c Config, identity fairness.Policy) error {
	l := &live{State: &fairness.State{}, log: r.store.Open(r.ID, r.Origin, r.keys.log)}
	identity.Origin, identity.LogKey, identity.VRFKey = r.Origin, r.VKey, [fairness.PublicKeySize]byte(r.keys.vrf.PublicKey().Bytes())
	_, err := l.log.Append(ctx, func([]byte) error { return ErrExists }, func(b *pglog.Batch) error {
		identity.Created = fairness.Time(b.Now)
		p, err := c.withDefaults(timeOf(identity.Created)).policy(identity)
		if err != nil {
			return err
		}
		b.Publish()
		return newFiller(r, l, b).emit(&fairness.Room{Policy: *p})
	})
	if errors.Is(err, ErrExists) {
		return ErrExists
	}
	if err == nil {
		_ = r.marks.Put(r.markOf(), Mark{Size: l.log.Size(), Root: l.log.Root()}) // the next one says what is wrong
	}
	return err
}
