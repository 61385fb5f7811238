package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Person is one row of the people table.
type Person struct {
	ID            uuid.UUID
	Email         string
	Name          string
	Password      string // PHC string; empty: none
	Factor        []byte // sealed TOTP secret; nil: none
	FactorPending []byte
	FactorStep    int64
	Created       time.Time
}

const personColumns = `person_id, email, name, coalesce(password, ''), factor, factor_pending, factor_step, created_at`

// PersonByEmail returns the person with that address, or [ErrNotFound].
func (s *Store) PersonByEmail(ctx context.Context, email string) (Person, error) {
	return one[Person](ctx, s.pool, "read person", `select `+personColumns+` from people where email = $1`, email)
}

// Person returns one person, or [ErrNotFound].
func (s *Store) Person(ctx context.Context, id uuid.UUID) (Person, error) {
	return one[Person](ctx, s.pool, "read person", `select `+personColumns+` from people where person_id = $1`, id)
}

// addPerson stores a person without a second factor, or returns [ErrExists].
func addPerson(ctx context.Context, tx pgx.Tx, p Person) error {
	return exec(ctx, tx, "store person", `insert into people (person_id, email, name, password, created_at)
		values ($1, $2, $3, nullif($4, ''), $5)`,
		p.ID, p.Email, p.Name, p.Password, p.Created)
}

// SetName changes the display name.
func (s *Store) SetName(ctx context.Context, id uuid.UUID, name string) error {
	return must(ctx, s.pool, "change name", `update people set name = $2 where person_id = $1`, id, name)
}

// SetPassword changes the password and ends all sessions but one.
func (s *Store) SetPassword(ctx context.Context, id uuid.UUID, phc string, keep uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "change password", `update people set password = $2 where person_id = $1`, id,
			phc); err != nil {
			return err
		}
		return endOthers(ctx, tx, id, keep)
	})
}

// Rehash replaces the hash of an unchanged password.
func (s *Store) Rehash(ctx context.Context, id uuid.UUID, before, after string) error {
	return exec(ctx, s.pool, "hash password anew", `update people set password = $3 where person_id = $1
		and password = $2`, id, before, after)
}

// SetPendingFactor stores a second factor to be confirmed.
func (s *Store) SetPendingFactor(ctx context.Context, id uuid.UUID, sealed []byte) error {
	return must(ctx, s.pool, "store second factor", `update people set factor_pending = $2 where person_id = $1`, id,
		sealed)
}

// EnableFactor makes the pending factor the second factor, unless it was replaced meanwhile. It
// marks step as used, replaces the recovery codes and ends all sessions but one. It returns
// [ErrNotFound].
func (s *Store) EnableFactor(ctx context.Context, id uuid.UUID, pending []byte, step int64, codes [][]byte,
	keep uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		const enable = `update people set factor = factor_pending, factor_pending = null, factor_step = $3
			where person_id = $1 and factor_pending = $2`
		if err := must(ctx, tx, "enable second factor", enable, id, pending, step); err != nil {
			return err
		}
		if err := setCodes(ctx, tx, id, codes); err != nil {
			return err
		}
		return endOthers(ctx, tx, id, keep)
	})
}

// DisableFactor removes the second factor and its recovery codes.
func (s *Store) DisableFactor(ctx context.Context, id uuid.UUID) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "remove second factor", `update people set factor = null, factor_pending = null
			where person_id = $1`, id); err != nil {
			return err
		}
		return setCodes(ctx, tx, id, nil)
	})
}

// UseStep marks the code of a time step as used; false if it or a later one already was.
func (s *Store) UseStep(ctx context.Context, id uuid.UUID, step int64) (bool, error) {
	n, err := changed(ctx, s.pool, "use code", `update people set factor_step = $2 where person_id = $1
		and factor_step < $2 and factor is not null`, id, step)
	return n > 0, err
}

// UseCode deletes a recovery code; false if it does not exist.
func (s *Store) UseCode(ctx context.Context, id uuid.UUID, hash []byte) (bool, error) {
	n, err := changed(ctx, s.pool, "use recovery code",
		`delete from recovery_codes where person_id = $1 and hash = $2`, id, hash)
	return n > 0, err
}

// SetCodes replaces the recovery codes.
func (s *Store) SetCodes(ctx context.Context, id uuid.UUID, codes [][]byte) error {
	return s.inTx(ctx, func(tx pgx.Tx) error { return setCodes(ctx, tx, id, codes) })
}

func setCodes(ctx context.Context, tx pgx.Tx, id uuid.UUID, codes [][]byte) error {
	if err := exec(ctx, tx, "remove recovery codes", `delete from recovery_codes where person_id = $1`,
		id); err != nil {
		return err
	}
	return exec(ctx, tx, "store recovery codes", `insert into recovery_codes (person_id, hash) 
		select $1, unnest($2::bytea[])`, id, codes)
}

// CountCodes returns the number of unused recovery codes.
func (s *Store) CountCodes(ctx context.Context, id uuid.UUID) (int, error) {
	return value[int](ctx, s.pool, "count recovery codes", `select count(*) from recovery_codes where person_id = $1`,
		id)
}

// PersonByIdentity returns the person with an identity at an issuer, or [ErrNotFound].
func (s *Store) PersonByIdentity(ctx context.Context, issuer, subject string) (Person, error) {
	return one[Person](ctx, s.pool, "read identity", `select `+personColumns+
		` from people join identities using (person_id)
		where issuer = $1 and subject = $2`, issuer, subject)
}

// AddIdentity links a person to an identity at an issuer. It returns [ErrExists] if the identity or
// the person is already linked otherwise.
func (s *Store) AddIdentity(ctx context.Context, person uuid.UUID, issuer, subject string) error {
	return addIdentity(ctx, s.pool, person, issuer, subject)
}

// TakeOver links a person to an identity as AddIdentity does, and removes the account's password
// and sessions. It returns [ErrExists].
func (s *Store) TakeOver(ctx context.Context, person uuid.UUID, issuer, subject string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := addIdentity(ctx, tx, person, issuer, subject); err != nil {
			return err
		}
		if err := must(ctx, tx, "remove password", `update people set password = null where person_id = $1`,
			person); err != nil {
			return err
		}
		return endOthers(ctx, tx, person, uuid.Nil)
	})
}

func addIdentity(ctx context.Context, q querier, person uuid.UUID, issuer, subject string) error {
	return exec(ctx, q, "store identity", `insert into identities (issuer, subject, person_id) values ($1, $2, $3)`,
		issuer, subject, person)
}

// AddIdentified stores a new person with an identity, as a member. It returns [ErrExists].
func (s *Store) AddIdentified(ctx context.Context, p Person, issuer, subject string, org uuid.UUID, role string) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if err := addPerson(ctx, tx, p); err != nil {
			return err
		}
		if err := addIdentity(ctx, tx, p.ID, issuer, subject); err != nil {
			return err
		}
		return addMember(ctx, tx, org, p.ID, role, p.Created)
	})
}
