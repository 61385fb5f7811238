package room

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// rotationGrace is the time in which nodes may not have noticed a new key. A replaced key stays valid for
// that time plus the life of a pass.
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

// addedKeys returns the keys made by rotation, oldest first.
func (r *Room) addedKeys() []passKey {
	if added := r.flow.added.Load(); added != nil {
		return *added
	}
	return nil
}

// passKeys returns all keys, newest first.
func (r *Room) passKeys() []passKey {
	added := r.addedKeys()
	all := make([]passKey, 0, len(added)+1)
	for i := range added {
		all = append(all, added[len(added)-1-i])
	}
	return append(all, passKey{private: r.keys.Pass, id: keyID(r.keys.Pass)})
}

// signingKey returns the newest key.
func (r *Room) signingKey() passKey { return r.passKeys()[0] }

// usedWithin returns the keys that may have signed a pass less than life ago, newest first.
func (r *Room) usedWithin(life time.Duration) []passKey {
	all := r.passKeys()
	for i := 1; i < len(all); i++ {
		if followed := all[i-1].from; r.clock.Now().Sub(followed) > life+rotationGrace {
			return all[:i]
		}
	}
	return all
}

// PassKeys returns the keys that verify the room's passes, newest first. A replaced key is included until all
// passes that it signed have expired.
func (r *Room) PassKeys() []PassKey {
	var life time.Duration
	if r.policy != nil {
		life = r.session() + maxRounding
	}
	var list []PassKey
	for _, k := range r.usedWithin(life) {
		list = append(list, k.jwk())
	}
	return list
}

// passKey returns the public key with that id, if it may have signed less than life ago. An unknown key may
// be new on another node: the keys are then read again, at most once a second, whatever tokens arrive.
func (r *Room) passKey(ctx context.Context, id string, life time.Duration) (crypto.PublicKey, error) {
	if k, ok := r.findPassKey(id, life); ok {
		return k, nil
	}
	last, now := r.flow.reread.Load(), time.Now().UnixNano()
	if now-last >= int64(time.Second) && r.flow.reread.CompareAndSwap(last, now) {
		if err := r.readPassKeys(ctx); err != nil {
			return nil, &keyError{err}
		}
		if k, ok := r.findPassKey(id, life); ok {
			return k, nil
		}
	}
	return nil, ErrPass
}

func (r *Room) findPassKey(id string, life time.Duration) (crypto.PublicKey, bool) {
	for _, k := range r.usedWithin(life) {
		if k.id == id {
			return k.private.Public(), true
		}
	}
	return nil, false
}

// RotatePassKey generates a new pass key, which signs from now on, and returns its id. Passes signed before
// stay valid.
func (r *Room) RotatePassKey(ctx context.Context) (string, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	id := keyID(ed25519.NewKeyFromSeed(seed))
	if err := r.flow.store.AddPassKey(ctx, r.ID, id, r.flow.master.SealFor(r.ID, passPurpose, seed).Sealed); err != nil {
		return "", err
	}
	return id, r.readPassKeys(ctx)
}

// readPassKeys reads and opens the keys made by rotation.
func (r *Room) readPassKeys(ctx context.Context) error {
	sealed, err := r.flow.store.PassKeys(ctx, r.ID)
	if err != nil {
		return err
	}
	added := make([]passKey, len(sealed))
	for i, s := range sealed {
		seed, err := r.flow.master.OpenFor(r.ID, pgroom.Key{Purpose: passPurpose, Sealed: s.Sealed})
		if err != nil {
			return err
		}
		private := ed25519.NewKeyFromSeed(seed)
		if keyID(private) != s.ID {
			return fmt.Errorf("%w: pass key %s does not match its id", keys.ErrMasterKey, s.ID)
		}
		added[i] = passKey{private, s.ID, s.Created}
	}
	r.keepPassKeys(added)
	return nil
}

// keepPassKeys stores keys that were read, unless a concurrent read returned more: keys are never removed.
func (r *Room) keepPassKeys(added []passKey) {
	for {
		was := r.flow.added.Load()
		if was != nil && len(*was) > len(added) || r.flow.added.CompareAndSwap(was, &added) {
			return
		}
	}
}
