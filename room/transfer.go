package room

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
)

// TransferLasts is how long a transfer code is valid.
const TransferLasts = 10 * time.Minute

// transferSize is the length of a code, in bytes.
const transferSize = 16

// Transfer lets another device of the visitor take over a place: it returns a code for which [Room.TakeOver]
// returns the secret, once, within [TransferLasts]. An earlier code of the ticket becomes invalid. The
// database stores neither the code nor the secret, only the secret sealed with the code. Errors: those of
// [Room.Place], and [ErrSecret].
func (r *Room) Transfer(ctx context.Context, ticket fairness.Ticket,
	secret [fairness.SecretSize]byte) (code string, err error) {
	if fairness.NewTicket(r.Origin, secret) != ticket {
		return "", ErrSecret
	}
	if _, err := r.Place(ctx, ticket); err != nil {
		return "", err
	}
	var raw [transferSize]byte
	_, _ = rand.Read(raw[:]) // never fails
	seal, err := r.transferSeal(raw)
	if err != nil {
		return "", err
	}
	sealed := seal.Seal(nil, make([]byte, seal.NonceSize()), secret[:], nil) //nolint:gosec // each code seals once
	if err := r.flow.store.AddTransfer(ctx, r.ID, uuid.UUID(ticket), r.transferHash(raw), sealed,
		TransferLasts); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(raw[:]), nil
}

// TakeOver returns the secret of a code's place, and invalidates the code. Error: [ErrTransfer].
func (r *Room) TakeOver(ctx context.Context, code string) (secret [fairness.SecretSize]byte, err error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(text) != transferSize {
		return secret, ErrTransfer
	}
	raw := [transferSize]byte(text)
	sealed, err := r.flow.store.TakeTransfer(ctx, r.ID, r.transferHash(raw))
	if err != nil {
		return secret, err
	}
	seal, err := r.transferSeal(raw)
	if err != nil {
		return secret, err
	}
	plain, err := seal.Open(nil, make([]byte, seal.NonceSize()), sealed, nil)
	if err != nil || len(plain) != len(secret) {
		return secret, ErrTransfer
	}
	return [fairness.SecretSize]byte(plain), nil
}

// transferHash returns the hash under which the database stores a code.
func (r *Room) transferHash(code [transferSize]byte) [32]byte {
	return sha256.Sum256(append([]byte("proofline transfer code\n"+r.Origin+"\n"), code[:]...))
}

func (r *Room) transferSeal(code [transferSize]byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, code[:], []byte(r.Origin), "proofline transfer key", 32)
	if err != nil {
		return nil, fmt.Errorf("derive a transfer's key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seal a transfer: %w", err)
	}
	return cipher.NewGCM(block)
}
