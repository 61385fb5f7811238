package pgcontrol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

var (
	// ErrKeyReused means that the key was used with a different request before.
	ErrKeyReused = errors.New("key was used for another request")
	// ErrKeyUnderWay means that the first request with the key is still being processed.
	ErrKeyUnderWay = errors.New("request under way")
)

// Keys stores idempotency keys and the answers to their requests, in the table idempotency_keys.
type Keys struct{ pool *pgxpool.Pool }

// KeyLife is how long a key is remembered.
const KeyLife = 24 * time.Hour

// Answer is the answer to a request with a key.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    []byte // nil: the body was not stored
}

// ClaimKey claims a key for a request, given by its hash. It returns nil for the first request with
// the key, and the stored answer when the same request is repeated. Errors: [ErrKeyReused],
// [ErrKeyUnderWay].
func (s *Keys) ClaimKey(ctx context.Context, org uuid.UUID, key string, request []byte) (*Answer, error) {
	tag, err := s.pool.Exec(ctx, `
		insert into idempotency_keys as k (org_id, key, request) values ($1, $2, $3)
		on conflict (org_id, key) do update set request = $3, status = null, headers = null, body = null, created_at = now()
		where k.created_at < now() - $4::interval`, org, key, request, KeyLife)
	if err != nil {
		return nil, fmt.Errorf("claim key: %w", err)
	}
	if tag.RowsAffected() == 1 {
		return nil, nil
	}
	var (
		before  []byte
		status  *int
		headers json.RawMessage
		a       Answer
	)
	err = s.pool.QueryRow(ctx, `select request, status, headers, body from idempotency_keys
		where org_id = $1 and key = $2`, org, key).Scan(&before, &status, &headers, &a.Body)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // released since the insert
		return nil, ErrKeyUnderWay
	case err != nil:
		return nil, fmt.Errorf("read key: %w", err)
	case !bytes.Equal(before, request):
		return nil, ErrKeyReused
	case status == nil:
		return nil, ErrKeyUnderWay
	}
	a.Status = *status
	if err := json.Unmarshal(headers, &a.Headers); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return &a, nil
}

// KeepAnswer stores the answer to the request that claimed a key.
func (s *Keys) KeepAnswer(ctx context.Context, org uuid.UUID, key string, a Answer) error {
	headers, err := json.Marshal(a.Headers)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	_, err = s.pool.Exec(ctx, `update idempotency_keys set status = $3, headers = $4, body = $5
		where org_id = $1 and key = $2`, org, key, a.Status, headers, a.Body)
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// ReleaseKey releases a key whose request had no effect.
func (s *Keys) ReleaseKey(ctx context.Context, org uuid.UUID, key string) error {
	if _, err := s.pool.Exec(ctx, `delete from idempotency_keys
		where org_id = $1 and key = $2 and status is null`, org, key); err != nil {
		return fmt.Errorf("release key: %w", err)
	}
	return nil
}

// PruneKeys deletes all keys that are older than [KeyLife].
func (s *Keys) PruneKeys(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `delete from idempotency_keys where created_at < now() - $1::interval`,
		KeyLife); err != nil {
		return fmt.Errorf("prune keys: %w", err)
	}
	return nil
}
