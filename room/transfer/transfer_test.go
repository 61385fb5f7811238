package transfer_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/transfer"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

const origin = "example.com/r/test"

var errNoPlace = errors.New("no such place")

// places are the tickets that have a place.
type places []fairness.Ticket

// Place implements [transfer.Places].
func (p places) Place(_ context.Context, t fairness.Ticket) (standing fairness.Standing, err error) {
	for _, known := range p {
		if known == t {
			return standing, nil
		}
	}
	return standing, errNoPlace
}

// secret returns a secret and its ticket.
func secret(n byte) (secret [fairness.SecretSize]byte, ticket fairness.Ticket) {
	secret = [fairness.SecretSize]byte(bytes.Repeat([]byte{n}, fairness.SecretSize))
	return secret, fairness.NewTicket(origin, secret)
}

// begin returns a code for the place of a ticket.
func begin(t *testing.T, codes *transfer.Transfers, n byte) (code string) {
	t.Helper()
	s, ticket := secret(n)
	code, err := codes.Begin(t.Context(), ticket, s)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// open returns the transfers of a room in which tickets 1 and 2 have places.
func open(pool *pgxpool.Pool, slug, origin string) *transfer.Transfers {
	_, first := secret(1)
	_, second := secret(2)
	return transfer.New(pgroom.RoomID(slug), origin, places{first, second}, pgroom.NewStore(pool).Transfers)
}

// TestTake: a code returns its ticket's secret once, on any node.
func TestTake(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	codes := open(pool, "test", origin)
	first, second := begin(t, codes, 1), begin(t, codes, 2)
	for n, code := range map[byte]string{1: first, 2: second} {
		want, _ := secret(n)
		if got, err := open(pool, "test", origin).Take(t.Context(), code); err != nil || got != want {
			t.Errorf("code of %d returned %x, %v", n, got, err)
		}
		if got, err := codes.Take(t.Context(), code); !errors.Is(err, transfer.ErrCode) || got == want {
			t.Errorf("code of %d returned %x again, %v", n, got, err)
		}
	}
}

// TestBeginAgain: only the latest code of a ticket is valid.
func TestBeginAgain(t *testing.T) {
	t.Parallel()
	codes := open(servertest.Pool(t, pgtest.URL(t)), "test", origin)
	first, second := begin(t, codes, 1), begin(t, codes, 1)
	if _, err := codes.Take(t.Context(), first); !errors.Is(err, transfer.ErrCode) {
		t.Errorf("earlier code: %v, want ErrCode", err)
	}
	if _, err := codes.Take(t.Context(), second); err != nil {
		t.Errorf("latest code: %v", err)
	}
}

// TestBeginRefused: only the visitor who has a place, and its secret, can move it.
func TestBeginRefused(t *testing.T) {
	t.Parallel()
	codes := open(servertest.Pool(t, pgtest.URL(t)), "test", origin)
	known, ticket := secret(1)
	other, absent := secret(3)
	elsewhere := fairness.NewTicket("example.com/r/other", known)
	for name, c := range map[string]struct {
		ticket fairness.Ticket
		secret [fairness.SecretSize]byte
		want   error
	}{
		"secret of another ticket": {ticket, other, transfer.ErrSecret},
		"ticket of another room":   {elsewhere, known, transfer.ErrSecret},
		"ticket without a place":   {absent, other, errNoPlace},
	} {
		if code, err := codes.Begin(t.Context(), c.ticket, c.secret); !errors.Is(err, c.want) || code != "" {
			t.Errorf("%s: code %q, %v; want %v", name, code, err, c.want)
		}
	}
}

// TestTakeRefused: only the issued code works, and only in its room.
func TestTakeRefused(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	codes := open(pool, "test", origin)
	code := begin(t, codes, 1)
	raw, err := base64.RawURLEncoding.DecodeString(code)
	if err != nil || len(raw) != 16 {
		t.Fatalf("code %q: %d bytes, %v", code, len(raw), err)
	}
	last := code[:len(code)-1] + string(code[len(code)-1]+1) // same bytes, unused bits set
	for name, c := range map[string]struct {
		codes *transfer.Transfers
		code  string
	}{
		"empty":          {codes, ""},
		"not base64":     {codes, "!" + code[1:]},
		"padded":         {codes, code + "=="},
		"unused bits":    {codes, last},
		"too short":      {codes, base64.RawURLEncoding.EncodeToString(raw[1:])},
		"too long":       {codes, base64.RawURLEncoding.EncodeToString(append(raw, 0))},
		"never issued":   {codes, base64.RawURLEncoding.EncodeToString(make([]byte, 16))},
		"another room":   {open(pool, "other", origin), code},
		"another origin": {open(pool, "test", "example.org/r/test"), code},
	} {
		if _, err := c.codes.Take(t.Context(), c.code); !errors.Is(err, transfer.ErrCode) {
			t.Errorf("%s: %v, want ErrCode", name, err)
		}
	}
	if _, err := codes.Take(t.Context(), code); err != nil {
		t.Errorf("the issued code no longer works: %v", err)
	}
}

// TestExpired: a code is valid for [transfer.Lasts].
func TestExpired(t *testing.T) {
	t.Parallel()
	clock := pgtest.NewClock(t)
	codes := open(servertest.Pool(t, clock.URL), "test", origin)
	first, second := begin(t, codes, 1), begin(t, codes, 2)
	clock.Pass(transfer.Lasts * 9 / 10)
	if _, err := codes.Take(t.Context(), first); err != nil {
		t.Errorf("after nine minutes: %v", err)
	}
	clock.Pass(transfer.Lasts * 2 / 10)
	if _, err := codes.Take(t.Context(), second); !errors.Is(err, transfer.ErrCode) {
		t.Errorf("after eleven minutes: %v, want ErrCode", err)
	}
}

// TestStored: a copy of the database does not reveal a code or a secret.
func TestStored(t *testing.T) {
	t.Parallel()
	pool := servertest.Pool(t, pgtest.URL(t))
	code := begin(t, open(pool, "test", origin), 1)
	raw, _ := base64.RawURLEncoding.DecodeString(code)
	known, _ := secret(1)
	var hash, sealed []byte
	err := pool.QueryRow(t.Context(), "select code_hash, sealed from room_transfers").Scan(&hash, &sealed)
	if err != nil {
		t.Fatal(err)
	}
	if row := append(hash, sealed...); bytes.Contains(row, raw[:8]) || bytes.Contains(row, known[:8]) {
		t.Errorf("stored %x", row)
	}
}
