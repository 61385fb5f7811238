package pgwebhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Mail is the target of deliveries by mail.
var Mail uuid.UUID

// Delivery is one message to one recipient.
type Delivery struct {
	Org       uuid.UUID
	ID        uuid.UUID // UUID version 7
	Target    uuid.UUID // an endpoint, or [Mail]
	Recipient string    // URL or e-mail address
	Type      string
	Room      string // slug; "": none
	Payload   string
	Created   time.Time
	State     string     // "waiting", "delivered" or "failed"
	Tries     int        // position in the retry schedule
	Attempts  int        // number of attempts in total
	Due       *time.Time // time of the next attempt while waiting
}

// Outbox stores deliveries and the log of their attempts, in the tables deliveries,
// delivery_attempts and alerts_sent.
type Outbox struct{ pool *pgxpool.Pool }

// Outgoing holds deliveries and alerts to store.
type Outgoing struct {
	Deliveries []Delivery
	Alerts     []Alert
}

// Alert is sent unless one of the same kind and subject was sent within Quiet.
type Alert struct {
	Org        uuid.UUID
	Kind       string
	About      string // subject of the alert, such as a room's slug; "": none
	At         time.Time
	Quiet      time.Duration // minimum interval between alerts about the same subject
	Deliveries []Delivery
}

// insert stores the deliveries and alerts.
func (o *Outgoing) insert(ctx context.Context, tx pgx.Tx) error {
	if err := insertDeliveries(ctx, tx, o.Deliveries); err != nil {
		return err
	}
	for _, a := range o.Alerts {
		tag, err := tx.Exec(ctx, `insert into alerts_sent (org_id, kind, room, at) values ($1, $2, $3, $4)
			on conflict (org_id, kind, room) do update set at = $4
			where alerts_sent.at <= $5`, a.Org, a.Kind, a.About, a.At, a.At.Add(-a.Quiet))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			continue
		}
		if err := insertDeliveries(ctx, tx, a.Deliveries); err != nil {
			return err
		}
	}
	return nil
}

// Add stores deliveries and alerts.
func (s *Outbox) Add(ctx context.Context, o Outgoing) error {
	return write(ctx, s.pool, "store deliveries", func(tx pgx.Tx) error { return o.insert(ctx, tx) })
}

const deliveryColumns = `org_id, delivery_id, target, recipient, type, room, payload, created_at, state, tries,
	attempts, due_at`

// insertDeliveries stores new deliveries that are due immediately.
func insertDeliveries(ctx context.Context, tx pgx.Tx, list []Delivery) error {
	batch := &pgx.Batch{}
	for _, d := range list {
		batch.Queue(`insert into deliveries (org_id, delivery_id, target, recipient, type, room, payload,
			created_at, due_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8,
			$8)`, d.Org, d.ID, d.Target, d.Recipient, d.Type, d.Room, d.Payload, d.Created)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// Limits are the limits for [Outbox.Take].
type Limits struct {
	Now     time.Time
	Until   time.Time // end of the lease
	Lane    int       // concurrent deliveries to one recipient, on all nodes
	Healthy int       // deliveries to working recipients
	Failing int       // deliveries to recipients whose latest attempt failed, one each
}

// Taken is a leased delivery with the secrets of its endpoint; mail has none.
type Taken struct {
	Delivery
	Secret, Former []byte // sealed; nil: none
	FormerUntil    *time.Time
	Failing        bool // the endpoint's latest attempt failed
}

// take leases deliveries per lane: an endpoint, or the mail of an organization. A long backlog in
// one lane therefore does not delay the others. Within a lane the delivery due longest comes first.
const take = `with lanes as (
		select org_id, endpoint_id as target, failures > 0 as failing,
		case when failures > 0 then 1 else $3::int end as most
		from webhook_endpoints where disabled = ''
		union all
		select org_id, target, false, $3::int from (select distinct org_id, target from deliveries
			where target = '00000000-0000-0000-0000-000000000000' and due_at is not null) as mail
	), due as (
		select d.org_id, d.delivery_id, l.failing, row_number() over (partition by l.failing
		order by d.rank, random()) as place
		from lanes l
		cross join lateral (
			select count(*) as busy from deliveries b
			where b.org_id = l.org_id and b.target = l.target and b.leased_until > $1::timestamptz
		) as b
		cross join lateral (
			select f.org_id, f.delivery_id, row_number() over () as rank from (
				select org_id, delivery_id from deliveries
				where org_id = l.org_id and target = l.target and due_at <= $1
				and (leased_until is null or leased_until <= $1)
				order by due_at limit greatest(l.most - b.busy, 0) for update skip locked
			) as f
		) as d
	), taken as (
		update deliveries u set leased_until = $2::timestamptz, tries = u.tries + 1, attempts = u.attempts + 1
		from due where (u.org_id, u.delivery_id) = (due.org_id, due.delivery_id)
		and due.place <= case when due.failing then $5::int else $4::int end
		returning u.*
	)
	select t.org_id, t.delivery_id, t.target, coalesce(e.url, t.recipient), t.type, t.room, t.payload, t.created_at,
	t.state, t.tries, t.attempts, t.due_at,
		e.secret, e.former_secret, e.former_until, coalesce(e.failures > 0, false)
	from taken t left join webhook_endpoints e on (e.org_id, e.endpoint_id) = (t.org_id, t.target)`

// Take leases due deliveries and counts the attempts. The lock serializes nodes, which would
// otherwise all find the same lanes free.
func (s *Outbox) Take(ctx context.Context, l Limits) (list []Taken, err error) {
	err = write(ctx, s.pool, "take deliveries", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(
			hashtextextended('proofline outbox of ' || current_schema(), 0))`); err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, take, l.Now, l.Until, l.Lane, l.Healthy, l.Failing)
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Taken])
		return err
	})
	return list, err
}

// Attempt is the result of one attempt.
type Attempt struct {
	Number   int // number of the attempt, from 1
	At       time.Time
	Took     time.Duration // stored with millisecond precision
	Status   int           // HTTP or SMTP status; 0: no response
	Error    string        // "": success
	Response string        // beginning of the response
}

// Health is the state of an endpoint after an attempt.
type Health struct {
	Failures int
	Since    time.Time // time of the first of these failures
}

// Finish stores an attempt and the new state of the delivery: delivered, waiting until due, or
// failed if due is nil. A delivery given up in the meantime stays failed unless this attempt
// succeeded.
func (s *Outbox) Finish(ctx context.Context, d Delivery, a Attempt, due *time.Time) (h Health, err error) {
	state := "waiting"
	switch {
	case a.Error == "":
		state, due = "delivered", nil
	case due == nil:
		state = "failed"
	}
	err = write(ctx, s.pool, "finish delivery", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into delivery_attempts (org_id, delivery_id, number, at, took_ms, status, error,
			response)
			values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict do nothing`,
			d.Org, d.ID, a.Number, a.At, a.Took.Milliseconds(), a.Status, a.Error, a.Response); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update deliveries set state = $3, due_at = $4, leased_until = null
			where org_id = $1 and delivery_id = $2 and attempts = $5
			and (state = 'waiting' or $3 = 'delivered')`, d.Org, d.ID, state, due, a.Number); err != nil {
			return err
		}
		if d.Target == Mail {
			return nil
		}
		h, err = noteHealth(ctx, tx, d, a)
		return err
	})
	return h, err
}

// noteHealth updates the failures of an endpoint.
func noteHealth(ctx context.Context, tx pgx.Tx, d Delivery, a Attempt) (h Health, err error) {
	if a.Error == "" {
		_, err = tx.Exec(ctx, `update webhook_endpoints set failures = 0, failing_since = null
			where org_id = $1 and endpoint_id = $2 and failures > 0`, d.Org, d.Target)
		return h, err
	}
	rows, _ := tx.Query(ctx, `update webhook_endpoints
		set failures = failures + 1, failing_since = coalesce(failing_since, $3)
		where org_id = $1 and endpoint_id = $2 returning failures, failing_since`, d.Org, d.Target, a.At)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Health])
	if len(list) > 0 {
		h = list[0]
	}
	return h, err
}

// Release returns a leased delivery that was not attempted.
func (s *Outbox) Release(ctx context.Context, d Delivery) error {
	_, err := s.pool.Exec(ctx, `update deliveries
		set leased_until = null, tries = tries - 1, attempts = attempts - 1
		where org_id = $1 and delivery_id = $2 and attempts = $3 and due_at is not null`, d.Org, d.ID, d.Attempts)
	if err != nil {
		return fmt.Errorf("release delivery: %w", err)
	}
	return nil
}

// Redeliver makes a delivery due now, with all retries. It returns [ErrNotFound] if the delivery
// does not exist, or its endpoint is deleted or disabled.
func (s *Outbox) Redeliver(ctx context.Context, org, id uuid.UUID, now time.Time) error {
	tag, err := s.pool.Exec(ctx, `update deliveries d
		set state = 'waiting', due_at = $3, tries = 0, leased_until = null
		where org_id = $1 and delivery_id = $2 and (leased_until is null or leased_until <= $3)
		and (target = $4 or exists (select from webhook_endpoints e where e.org_id = d.org_id
		and e.endpoint_id = d.target and e.disabled = ''))`,
		org, id, now, Mail)
	if err != nil {
		return fmt.Errorf("redeliver: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// Filter selects deliveries. Zero fields select all.
type Filter struct {
	Target *uuid.UUID
	State  string
	Type   string
	Room   string
	Before uuid.UUID // only deliveries older than this one
	Limit  int
}

// List returns deliveries of an organization, newest first.
func (s *Outbox) List(ctx context.Context, org uuid.UUID, f Filter) ([]Delivery, error) {
	var before *uuid.UUID
	if f.Before != uuid.Nil {
		before = &f.Before
	}
	rows, _ := s.pool.Query(ctx, `select `+deliveryColumns+` from deliveries where org_id = $1
		and ($2::uuid is null or target = $2) and ($3 = '' or state = $3) and ($4 = '' or type = $4)
		and ($5 = '' or room = $5)
		and ($6::uuid is null or delivery_id < $6) order by delivery_id desc limit $7`,
		org, f.Target, f.State, f.Type, f.Room, before, f.Limit)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Delivery])
	if err != nil {
		return nil, fmt.Errorf("read deliveries: %w", err)
	}
	return list, nil
}

// Get returns a delivery with its attempts, oldest first, or [ErrNotFound].
func (s *Outbox) Get(ctx context.Context, org, id uuid.UUID) (Delivery, []Attempt, error) {
	rows, _ := s.pool.Query(ctx, `select `+deliveryColumns+
		` from deliveries where org_id = $1 and delivery_id = $2`, org, id)
	d, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Delivery])
	if err != nil {
		return d, nil, fmt.Errorf("read delivery: %w", found(err))
	}
	rows, _ = s.pool.Query(ctx, `select number, at, took_ms * 1000000, status, error, response from delivery_attempts
		where org_id = $1 and delivery_id = $2 order by number`, org, id)
	attempts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Attempt])
	if err != nil {
		return d, nil, fmt.Errorf("read attempts: %w", err)
	}
	return d, attempts, nil
}

// Prune deletes at most limit deliveries from before a time, with their attempts, and alerts of the
// same age. It returns the number of deliveries deleted.
func (s *Outbox) Prune(ctx context.Context, before time.Time, limit int) (int, error) {
	tag, err := s.pool.Exec(ctx, `with old as (
			select org_id, delivery_id from deliveries where created_at < $1 order by created_at limit $2
		), attempts as (
			delete from delivery_attempts a using old where (a.org_id, a.delivery_id) = (old.org_id, old.delivery_id)
		), alerted as (
			delete from alerts_sent where at < $1
		)
		delete from deliveries d using old
		where (d.org_id, d.delivery_id) = (old.org_id, old.delivery_id)`, before, limit)
	if err != nil {
		return 0, fmt.Errorf("prune deliveries: %w", err)
	}
	return int(tag.RowsAffected()), nil
}
