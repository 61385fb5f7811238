// Package transfer moves a visitor's place to another device with a code that works once.
//
//	old device: Begin(ticket, secret) ─► code; the database stores the secret, sealed with the code
//	new device: Take(code) ─► ticket's secret; the code is used up
package transfer

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

var (
	// ErrSecret is returned when a secret does not belong to the ticket.
	ErrSecret = errors.New("the secret is not this ticket's")
	// ErrCode is returned for a transfer code that was used, is too old, or never existed.
	ErrCode = errors.New("this link was used, or is older than ten minutes")
)

// Lasts is how long a transfer code is valid.
const Lasts = 10 * time.Minute

// codeSize is the length of a code, in bytes.
const codeSize = 16

// Places looks up the places of a room's visitors.
type Places interface {
	// Place returns a ticket's standing if this node can vouch for it.
	Place(ctx context.Context, t fairness.Ticket) (fairness.Standing, error)
}

// Transfers are the transfer codes of one room. It is safe for concurrent use.
type Transfers struct {
	room   uuid.UUID
	origin string
	places Places
	store  *pgroom.Transfers
}

// New returns the transfers of a room.
func New(room uuid.UUID, origin string, places Places, store *pgroom.Transfers) *Transfers {
	return &Transfers{room, origin, places, store}
}

// Begin returns a code with which another device of the visitor can take over the place: [Transfers.Take] returns
// the secret for it once, within [Lasts]. An earlier code of the ticket becomes invalid. The database stores
// neither the code nor the secret, only the secret sealed with the code. Errors: those of [Places], and
// [ErrSecret].
func (t *Transfers) Begin(ctx context.Context, ticket fairness.Ticket,
	secret [fairness.SecretSize]byte) (code string, err error) {
	if fairness.NewTicket(t.origin, secret) != ticket {
		return "", ErrSecret
	}
	if _, err := t.places.Place(ctx, ticket); err != nil {
		return "", err
	}
	var raw [codeSize]byte
	_, _ = rand.Read(raw[:]) // never fails
	seal, err := t.seal(raw)
	if err != nil {
		return "", err
	}
	sealed := seal.Seal(nil, make([]byte, seal.NonceSize()), secret[:], nil) //nolint:gosec // each code seals once
	if err := t.store.AddTransfer(ctx, t.room, uuid.UUID(ticket), t.hash(raw), sealed,
		Lasts); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

// Take returns the secret of a code's place, and invalidates the code. Error: [ErrCode].
func (t *Transfers) Take(ctx context.Context, code string) (secret [fairness.SecretSize]byte, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(text) != codeSize {
		return secret, ErrCode
	}
	raw := [codeSize]byte(text)
	sealed, err := t.store.TakeTransfer(ctx, t.room, t.hash(raw))
	if err != nil {
		return secret, err
	}
	seal, err := t.seal(raw)
	if err != nil {
		return secret, err
	}
	plain, err := seal.Open(nil, make([]byte, seal.NonceSize()), sealed, nil)
	if err != nil || len(plain) != len(secret) {
		return secret, ErrCode
	}
	return [fairness.SecretSize]byte(plain), nil
}

// hash returns the hash under which the database stores a code.
func (t *Transfers) hash(code [codeSize]byte) [32]byte {
	return sha256.Sum256(append([]byte("proofline transfer code\n"+t.origin+"\n"), code[:]...))
}

func (t *Transfers) seal(code [codeSize]byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, code[:], []byte(t.origin), "proofline transfer key", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a transfer's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal a transfer: %w", err)
	}
	return cipher.NewGCM(block)
}
