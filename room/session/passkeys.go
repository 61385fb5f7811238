package session

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// rotationGrace is the time within which all nodes notice a new key. A replaced key stays valid for that time plus
// the life of a pass.
const rotationGrace = time.Minute

// passPurpose is the purpose for which pass keys are sealed.
const passPurpose = "pass"

// passKey is a key that signs passes.
type passKey struct {
	private ed25519.PrivateKey
	id      string    // RFC 7638 thumbprint
	from    time.Time // signs from then until the next key does; zero: the room's first key
}

// keyError is returned when the keys could not be read from the database.
type keyError struct{ err error }

// Error implements error.
func (e *keyError) Error() string { return e.err.Error() }

// PassKeyStore stores the sealed keys made by rotation, for all nodes.
type PassKeyStore interface {
	AddPassKey(ctx context.Context, room uuid.UUID, id string, sealed []byte) error
	PassKeys(ctx context.Context, room uuid.UUID) ([]pgroom.PassKey, error)
}

// PassKeys are the keys that sign a room's passes. It is safe for concurrent use.
type PassKeys struct {
	room   uuid.UUID
	first  ed25519.PrivateKey
	master *keys.MasterKey
	store  PassKeyStore
	clock  *clock.Clock

	added  atomic.Pointer[[]passKey] // made by rotation, oldest first
	reread atomic.Int64              // when they were last read because of an unknown key, in Unix nanoseconds
}

// NewPassKeys returns the keys of a room with its first key. [PassKeys.Refresh] reads the others.
func NewPassKeys(room uuid.UUID, first ed25519.PrivateKey, master *keys.MasterKey, store PassKeyStore,
	c *clock.Clock) *PassKeys {
	return &PassKeys{room: room, first: first, master: master, store: store, clock: c}
}

// others returns the keys made by rotation, oldest first.
func (k *PassKeys) others() []passKey {
	if added := k.added.Load(); added != nil {
		return *added
	}
	return nil
}

// all returns all keys, newest first.
func (k *PassKeys) all() []passKey {
	added := k.others()
	list := make([]passKey, 0, len(added)+1)
	for i := range added {
		list = append(list, added[len(added)-1-i])
	}
	return append(list, passKey{private: k.first, id: keyID(k.first)})
}

// signing returns the newest key.
func (k *PassKeys) signing() passKey { return k.all()[0] }

// usedWithin returns the keys that may have signed a pass less than life ago, newest first.
func (k *PassKeys) usedWithin(life time.Duration) []passKey {
	list := k.all()
	for i := 1; i < len(list); i++ {
		if followed := list[i-1].from; k.clock.Now().Sub(followed) > life+rotationGrace {
			return list[:i]
		}
	}
	return list
}

// Public returns the keys that verify passes that last for life, newest first. A replaced key is included until
// all passes that it signed have expired.
func (k *PassKeys) Public(life time.Duration) []PassKey {
	var list []PassKey
	for _, key := range k.usedWithin(life) {
		list = append(list, key.jwk())
	}
	return list
}

// verifying returns the public key with that id, if it may have signed less than life ago. An unknown key may
// be new on another node: the keys are then read again, at most once a second, whatever tokens arrive.
func (k *PassKeys) verifying(ctx context.Context, id string, life time.Duration) (crypto.PublicKey, error) {
	if key, ok := k.find(id, life); ok {
		return key, nil
	}
	last, now := k.reread.Load(), time.Now().UnixNano()
	if now-last >= int64(time.Second) && k.reread.CompareAndSwap(last, now) {
		if err := k.read(ctx); err != nil {
			return nil, &keyError{err}
		}
		if key, ok := k.find(id, life); ok {
			return key, nil
		}
	}
	return nil, ErrPass
}

func (k *PassKeys) find(id string, life time.Duration) (crypto.PublicKey, bool) {
	for _, key := range k.usedWithin(life) {
		if key.id == id {
			return key.private.Public(), true
		}
	}
	return nil, false
}

// Rotate generates a new pass key, which signs from now on, and returns its id. Passes signed before
// stay valid.
func (k *PassKeys) Rotate(ctx context.Context) (string, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	id := keyID(ed25519.NewKeyFromSeed(seed))
	if err := k.store.AddPassKey(ctx, k.room, id, k.master.SealFor(k.room, passPurpose, seed).Sealed); err != nil {
		return "", err
	}
	return id, k.read(ctx)
}

// Refresh reads the keys made by rotation if the database has a different number of them.
func (k *PassKeys) Refresh(ctx context.Context, stored int) error {
	if stored == len(k.others()) {
		return nil
	}
	return k.read(ctx)
}

// read reads and opens the keys made by rotation.
func (k *PassKeys) read(ctx context.Context) error {
	sealed, err := k.store.PassKeys(ctx, k.room)
	if err != nil {
		return err
	}
	added := make([]passKey, len(sealed))
	for i, s := range sealed {
		seed, err := k.master.OpenFor(k.room, pgroom.Key{Purpose: passPurpose, Sealed: s.Sealed})
		if err != nil {
			return err
		}
		private := ed25519.NewKeyFromSeed(seed)
		if keyID(private) != s.ID {
			return fmt.Errorf("%w: pass key %s does not match its id", keys.ErrMasterKey, s.ID)
		}
		added[i] = passKey{private, s.ID, s.Created}
	}
	k.keep(added)
	return nil
}

// keep stores keys that were read, unless a concurrent read returned more: keys are never removed.
func (k *PassKeys) keep(added []passKey) {
	for {
		was := k.added.Load()
		if was != nil && len(*was) > len(added) || k.added.CompareAndSwap(was, &added) {
			return
		}
	}
}
