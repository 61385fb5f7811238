package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Token is one row of the tokens table, without its hash.
type Token struct {
	Org     uuid.UUID
	ID      uuid.UUID
	Name    string
	Scopes  uint8
	MadeBy  string
	Created time.Time
	Expires time.Time
	Used    *time.Time
}

const tokenColumns = `org_id, token_id, name, scopes, made_by, created_at, expires_at, used_at` //nolint:gosec // names

// Tokens stores API tokens, in the table tokens.
type Tokens struct{ pool *pgxpool.Pool }

// Add stores a token.
func (s *Tokens) Add(ctx context.Context, t Token, hash []byte) error {
	return exec(ctx, s.pool, "store token", `insert into tokens (org_id, token_id, hash, name, scopes, made_by,
		created_at, expires_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8)`, t.Org, t.ID, hash, t.Name, int16(t.Scopes), t.MadeBy, t.Created, t.Expires)
}

// ByHash returns an unexpired token, or [ErrNotFound].
func (s *Tokens) ByHash(ctx context.Context, hash []byte, now time.Time) (Token, error) {
	return one[Token](ctx, s.pool, "read token", `select `+tokenColumns+
		` from tokens where hash = $1 and expires_at > $2`, hash, now)
}

// List returns the tokens of an organization, newest first.
func (s *Tokens) List(ctx context.Context, org uuid.UUID) ([]Token, error) {
	return all[Token](ctx, s.pool, "list tokens", `select `+tokenColumns+
		` from tokens where org_id = $1 order by created_at desc, token_id`, org)
}

// Ending returns the used tokens that expire in the interval (after, until], earliest first.
// A nil organization means all.
func (s *Tokens) Ending(ctx context.Context, org *uuid.UUID, after, until time.Time) ([]Token, error) {
	return all[Token](ctx, s.pool, "list expiring tokens", `select `+tokenColumns+` from tokens
		where ($1::uuid is null or org_id = $1) and expires_at > $2 and expires_at <= $3
		and used_at is not null order by expires_at, token_id`, org, after, until)
}

// Count returns the number of tokens of an organization.
func (s *Tokens) Count(ctx context.Context, org uuid.UUID) (int, error) {
	return value[int](ctx, s.pool, "count tokens", `select count(*) from tokens where org_id = $1`, org)
}

// Touch updates a token's time of last use.
func (s *Tokens) Touch(ctx context.Context, org, id uuid.UUID, now time.Time) error {
	return exec(ctx, s.pool, "touch token", `update tokens set used_at = $3 where org_id = $1 and token_id = $2`, org,
		id, now)
}

// Remove deletes a token and returns its name, or [ErrNotFound].
func (s *Tokens) Remove(ctx context.Context, org, id uuid.UUID) (name string, err error) {
	return value[string](ctx, s.pool, "revoke token", `delete from tokens where org_id = $1 and token_id = $2
		returning name`, org, id)
}
