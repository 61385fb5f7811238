package pgaccount

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
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

// People stores people, their passwords and their identities at issuers, in the tables people and
// identities.
type People struct{ pool *pgxpool.Pool }

// ByEmail returns the person with that address, or [ErrNotFound].
func (s *People) ByEmail(ctx context.Context, email string) (Person, error) {
	return one[Person](ctx, s.pool, "read person", `select `+personColumns+` from people where email = $1`, email)
}

// Get returns one person, or [ErrNotFound].
func (s *People) Get(ctx context.Context, id uuid.UUID) (Person, error) {
	return one[Person](ctx, s.pool, "read person", `select `+personColumns+` from people where person_id = $1`, id)
}

// addPerson stores a person without a second factor, or returns [ErrExists].
func addPerson(ctx context.Context, tx pgx.Tx, p Person) error {
	return exec(ctx, tx, "store person", `insert into people (person_id, email, name, password, created_at)
		values ($1, $2, $3, nullif($4, ''), $5)`,
		p.ID, p.Email, p.Name, p.Password, p.Created)
}

// SetName changes the display name.
func (s *People) SetName(ctx context.Context, id uuid.UUID, name string) error {
	return must(ctx, s.pool, "change name", `update people set name = $2 where person_id = $1`, id, name)
}

// SetPassword changes the password and ends all sessions but one.
func (s *People) SetPassword(ctx context.Context, id uuid.UUID, phc string, keep uuid.UUID) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := must(ctx, tx, "change password", `update people set password = $2 where person_id = $1`, id,
			phc); err != nil {
			return err
		}
		return endOthers(ctx, tx, id, keep)
	})
}

// Rehash replaces the hash of an unchanged password.
func (s *People) Rehash(ctx context.Context, id uuid.UUID, before, after string) error {
	return exec(ctx, s.pool, "rehash password", `update people set password = $3 where person_id = $1
		and password = $2`, id, before, after)
}

// ByIdentity returns the person with an identity at an issuer, or [ErrNotFound].
func (s *People) ByIdentity(ctx context.Context, issuer, subject string) (Person, error) {
	return one[Person](ctx, s.pool, "read identity", `select `+personColumns+
		` from people join identities using (person_id)
		where issuer = $1 and subject = $2`, issuer, subject)
}

// AddIdentity links a person to an identity at an issuer. It returns [ErrExists] if the identity or
// the person already has another link.
func (s *People) AddIdentity(ctx context.Context, person uuid.UUID, issuer, subject string) error {
	return addIdentity(ctx, s.pool, person, issuer, subject)
}

// TakeOver links a person to an identity as AddIdentity does, and removes the account's password
// and sessions. It returns [ErrExists].
func (s *People) TakeOver(ctx context.Context, person uuid.UUID, issuer, subject string) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
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

// addIdentity links an identity to a person. From then on it is no identity of a removed account.
func addIdentity(ctx context.Context, q querier, person uuid.UUID, issuer, subject string) error {
	return exec(ctx, q, "store identity", `with returned as (delete from former_identities where hash = $4)
		insert into identities (issuer, subject, person_id) values ($1, $2, $3)`,
		issuer, subject, person, identity{issuer, subject}.hash())
}

// AddIdentified stores a new person with an identity, as a member. It returns [ErrExists], or [ErrFormer] for the
// identity of an account that was removed.
func (s *People) AddIdentified(ctx context.Context, p Person, issuer, subject string, org uuid.UUID, role string) error {
	return inTx(ctx, s.pool, func(tx pgx.Tx) error {
		isFormer, err := value[bool](ctx, tx, "look for a removed identity", `select exists (select from former_identities
			where hash = $1)`, identity{issuer, subject}.hash())
		if err == nil && isFormer {
			err = ErrFormer
		}
		if err != nil {
			return err
		}
		if err := addPerson(ctx, tx, p); err != nil {
			return err
		}
		if err := addIdentity(ctx, tx, p.ID, issuer, subject); err != nil {
			return err
		}
		return addMember(ctx, tx, org, p.ID, role, p.Created)
	})
}

// lockPerson makes changes of a person's organizations wait for each other. It returns [ErrNotFound].
func lockPerson(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := value[uuid.UUID](ctx, tx, "lock person", `select person_id from people where person_id = $1 for update`, id)
	return err
}

// removePerson deletes an account with everything that belongs to it alone. Its identities are remembered as hashes.
func removePerson(ctx context.Context, tx pgx.Tx, id uuid.UUID, now time.Time) error {
	identities, err := all[identity](ctx, tx, "list identities", `select issuer, subject from identities
		where person_id = $1`, id)
	if err != nil {
		return err
	}
	for _, i := range identities {
		if err := exec(ctx, tx, "remember identity", `insert into former_identities (hash, removed_at) values ($1, $2)
			on conflict (hash) do update set removed_at = excluded.removed_at`, i.hash(), now); err != nil {
			return err
		}
	}
	for _, table := range []string{"recovery_codes", "identities", "sessions", "people"} {
		if err := exec(ctx, tx, "remove person", `delete from `+table+` where person_id = $1`, id); err != nil {
			return err
		}
	}
	return nil
}

// identity is an account at an issuer.
type identity struct{ Issuer, Subject string }

func (i identity) hash() []byte {
	h := sha256.Sum256([]byte("proofline/identity/v1\x00" + i.Issuer + "\x00" + i.Subject))
	return h[:]
}
