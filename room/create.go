package room

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/room/sequence"
)

// Create creates a room of the first organization; see [Rooms.CreateFor].
func (rs *Rooms) Create(ctx context.Context, c Config) (*Room, error) {
	return rs.CreateFor(ctx, pgroom.Owner{Org: pgroom.MainOrg}, c)
}

// CreateFor creates a room: its keys, its log, and the policy as the first entry. Errors: [*invalid.Error]
// with all problems, [ErrExists].
func (rs *Rooms) CreateFor(ctx context.Context, owner pgroom.Owner, c Config) (*Room, error) {
	rs.askRelays(ctx, c)
	others, problems := rs.problems(c)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	record, err := rs.register(ctx, owner, c)
	if err != nil {
		return nil, err
	}
	r, err := rs.prepare(ctx, record)
	if err != nil {
		return nil, err
	}
	if c, err = c.withKeysOf(rs.Issuer); err != nil {
		return nil, fmt.Errorf("create room %s: %w", c.Slug, err)
	}
	if err := rs.publish(ctx, r, c, others); err != nil {
		return nil, fmt.Errorf("create room %s: %w", c.Slug, err)
	}
	if title := c.title(); title != record.Title { // from an earlier attempt
		if err := rs.Store.SetTitle(ctx, r.ID, title); err != nil {
			return nil, err
		}
	}
	if err := r.details.First(ctx, c.Settings); err != nil {
		return nil, err
	}
	rs.group.Forget(c.Slug) // requests that arrived too early share the answer that there is no such room
	loaded, err := rs.load(ctx, c.Slug)
	if err != nil {
		return nil, err
	}
	_, version := r.details.Settings()
	return loaded, loaded.details.ReadVersion(ctx, version) // another request may have loaded it meanwhile
}

// Problems lists what prevents creating a room with this configuration now. It does not check whether the slug is
// taken.
func (rs *Rooms) Problems(c Config) invalid.List {
	_, problems := rs.problems(c)
	return problems
}

// problems also returns a policy with the beacon and witnesses that the room would rely on.
func (rs *Rooms) problems(c Config) (others fairness.Policy, problems invalid.List) {
	problems = append(rs.others(c, &others), c.ownKeys(rs.Issuer)...)
	problems = append(problems, invalid.Problems(c.checkWith(others, rs.clock.Now()))...)
	return others, problems
}

// Problems lists what is invalid in the configuration of a new room on any server; see [Rooms.Problems] for
// what depends on the server.
func (c Config) Problems(now time.Time) invalid.List {
	return invalid.Problems(c.check(now))
}

// check finds the problems that do not depend on the room's identity, which does not exist yet.
func (c Config) check(now time.Time) error {
	var p fairness.Policy
	if c.Beacon != fairness.NoBeacon { // the server knows which chain; no rule depends on it
		p.Beacon = &fairness.Beacon{Chain: beacon.Quicknet(), Margin: fairness.Millis(DefaultMargin.Milliseconds())}
	}
	return c.checkWith(p, now)
}

// checkWith checks the configuration with a policy that names beacon and witnesses.
func (c Config) checkWith(p fairness.Policy, now time.Time) error {
	p.Created, p.Origin, p.LogKey, p.VRFKey = millis.Of(now), "x", "x+", [fairness.PublicKeySize]byte{2}
	_, err := c.withStandIns().withDefaults(now).policy(p)
	return err
}

// register stores slug, title and keys. It resumes a room that was registered but whose policy was never
// published.
func (rs *Rooms) register(ctx context.Context, owner pgroom.Owner, c Config) (pgroom.Room, error) {
	id := pgroom.RoomID(c.Slug)
	record := pgroom.Room{ID: id, Slug: c.Slug, Title: c.title(), Owner: owner}
	record.Origin = originOf(rs.URL(record))
	sealed, err := keys.Generate(rs.MasterKey, id)
	if err != nil {
		return record, err
	}
	isNew, err := rs.Store.Insert(ctx, record, sealed,
		func(tx pgx.Tx) error { return rs.Logs.Create(ctx, tx, id) })
	if err == nil && !isNew {
		record, err = rs.Store.Get(ctx, c.Slug)
		if err == nil && record.Org != owner.Org {
			err = ErrExists
		}
		return record, err
	}
	return record, err
}

// publish appends the policy to the empty log, and the room to the log of rooms. It returns [ErrExists] if the log is
// not empty.
func (rs *Rooms) publish(ctx context.Context, r *Room, c Config, identity fairness.Policy) error {
	log := r.store.Open(r.ID, r.Origin, r.keys.Log)
	identity.Origin, identity.LogKey = r.Origin, r.VKey
	identity.VRFKey = [fairness.PublicKeySize]byte(r.keys.VRF.PublicKey().Bytes())
	err := rs.Register.Create(ctx, register.Created{
		Log: log, VKey: r.VKey, IsRehearsal: r.Owner.RehearsalOf != nil,
		Read: func([]byte) error { return ErrExists },
		Build: sequence.Begin(func(created fairness.Time) (*fairness.Policy, error) {
			identity.Created = created
			return c.withDefaults(millis.Time(created)).policy(identity)
		}),
	})
	if errors.Is(err, ErrExists) {
		return ErrExists
	}
	if err == nil {
		r.guard.Note(pglog.Mark{Size: log.Size(), Root: log.Root()})
	}
	return err
}
