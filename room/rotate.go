package room

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/proofline/proofline/room/pgroom"
)

// A key that another one followed goes on for as long as passes live, and the
// time in which nodes may not have noticed.
const rotationGrace = time.Minute

// passPurpose is what pass keys are sealed for.
const passPurpose = "pass"

// passKey is one key of passes.
type passKey struct {
	private ed25519.PrivateKey
	id      string    // RFC 7638 thumbprint
	from    time.Time // it signs from then on, until the next one does; zero for the room's first
}

// keyError is returned when the database did not say which keys there are.
type keyError struct{ err error }

// Error says what the database said.
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
	keys := make([]passKey, 0, len(added)+1)
	for i := range added {
		keys = append(keys, added[len(added)-1-i])
	}
	return append(keys, passKey{private: r.keys.pass, id: keyID(r.keys.pass)})
}

// signingKey returns the newest key.
func (r *Room) signingKey() passKey { return r.passKeys()[0] }

// usedWithin returns the keys that may have signed a pass less than life ago,
// newest first.
func (r *Room) usedWithin(life time.Duration) []passKey {
	keys := r.passKeys()
	for i := 1; i < len(keys); i++ {
		if followed := keys[i-1].from; r.clock.Now().Sub(followed) > life+rotationGrace {
			return keys[:i]
		}
	}
	return keys
}

// PassKeys returns the keys that verify the room's passes, newest first: one
// that was followed by another is among them until every pass that it signed
// has expired.
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

// passKey finds the public key with that id among those that may have signed
// less than life ago. One that another node made is read when it is first seen,
// though not more often than once a second, whatever strangers send.
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

// RotatePassKey makes a new key for passes, which signs from now on, and
// returns its id. Passes that are out stay valid.
func (r *Room) RotatePassKey(ctx context.Context) (string, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	id := keyID(ed25519.NewKeyFromSeed(seed))
	if err := r.flow.store.AddPassKey(ctx, r.ID, id, r.flow.master.seal(r.ID, passPurpose, seed).Sealed); err != nil {
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
		seed, err := r.flow.master.open(r.ID, pgroom.Key{Purpose: passPurpose, Sealed: s.Sealed})
		if err != nil {
			return err
		}
		private := ed25519.NewKeyFromSeed(seed)
		if keyID(private) != s.ID {
			return fmt.Errorf("%w: pass key %s is another one", ErrMasterKey, s.ID)
		}
		added[i] = passKey{private, s.ID, s.Created}
	}
	r.keepPassKeys(added)
	return nil
}

// keepPassKeys takes keys that were read, unless somebody read more meanwhile:
// there are never fewer.
func (r *Room) keepPassKeys(added []passKey) {
	for {
		was := r.flow.added.Load()
		if was != nil && len(*was) > len(added) || r.flow.added.CompareAndSwap(was, &added) {
			return
		}
	}
}
