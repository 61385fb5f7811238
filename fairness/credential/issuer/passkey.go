package issuer

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Errors of passkeys.
var (
	ErrNoPasskey = errors.New("no such passkey")
	ErrPasskeys  = errors.New("the account has as many passkeys as it may have")
)

// MaxPasskeys is the maximum number of passkeys of an account.
const MaxPasskeys = 10

// Passkey is a way back to an account that was proven otherwise before. An account with passkeys is one account, with
// one nullifier in each room.
type Passkey struct {
	Account    string          `json:"account"`
	Address    string          `json:"address,omitempty"` // that was proven, too
	Credential json.RawMessage `json:"credential"`        // what verifies it
}

// passkeys are the records of passkeys, in a file that only grows. A line has the keyed hashes of a passkey's id and of
// its account in hex, and its record in base64, sealed.
type passkeys struct {
	file *os.File

	mu     sync.Mutex
	sealed map[[hashSize]byte][]byte // by id
	count  map[[hashSize]byte]int    // by account
	failed error                     // of a write: nothing can be added until the file is opened again
}

// KeepPasskey stores a passkey under its id. When it returns, the record is on the disk. It returns [ErrPasskeys],
// [ErrNoPasskey] for an id that another account has, or an error of the store.
func (i *Issuer) KeepPasskey(id []byte, p Passkey) error {
	k, err := i.store.openPasskeys()
	if err != nil {
		return err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("keep passkey: %w", err)
	}
	name := i.passkeyName(id)
	sealing, err := i.passkeySealing()
	if err != nil {
		return err
	}
	account := [hashSize]byte(keyed(i.Derive("passkey account"), p.Account))
	return k.add(name, account, sealing.Seal(nil, nil, text, name[:])) //nolint:gosec // the AEAD draws a nonce itself
}

// Passkey returns the passkey with an id, or [ErrNoPasskey].
func (i *Issuer) Passkey(id []byte) (Passkey, error) {
	k, err := i.store.openPasskeys()
	if err != nil {
		return Passkey{}, err
	}
	name := i.passkeyName(id)
	k.mu.Lock()
	sealed, ok := k.sealed[name]
	k.mu.Unlock()
	if !ok {
		return Passkey{}, ErrNoPasskey
	}
	sealing, err := i.passkeySealing()
	if err != nil {
		return Passkey{}, err
	}
	text, err := sealing.Open(nil, nil, sealed, name[:])
	var p Passkey
	if err != nil || json.Unmarshal(text, &p) != nil {
		return Passkey{}, fmt.Errorf("%w: a passkey was sealed with another secret", ErrStore)
	}
	return p, nil
}

func (i *Issuer) passkeyName(id []byte) [hashSize]byte {
	return [hashSize]byte(keyed(i.Derive("passkey id"), string(id)))
}

func (i *Issuer) passkeySealing() (cipher.AEAD, error) {
	block, err := aes.NewCipher(i.Derive("passkey record"))
	if err != nil {
		return nil, fmt.Errorf("seal passkey: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// openPasskeys opens the file of passkeys at the first call.
func (s *Store) openPasskeys() (*passkeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passkeys != nil {
		return s.passkeys, nil
	}
	path := filepath.Join(filepath.Dir(s.dir), "passkeys.log")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // in the store's directory
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	k := &passkeys{file: f, sealed: map[[hashSize]byte][]byte{}, count: map[[hashSize]byte]int{}}
	if err := errors.Join(k.load(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), f.Close())
	}
	s.passkeys = k
	return k, nil
}

func (k *passkeys) load() error {
	text, err := os.ReadFile(k.file.Name())
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for n, line := range bytes.SplitAfter(text[:whole], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		id, account, sealed, ok := parsePasskey(line)
		if !ok {
			return fmt.Errorf("%w: %s, line %d", ErrStore, k.file.Name(), n+1)
		}
		k.sealed[id] = sealed
		k.count[account]++
	}
	if whole < len(text) {
		return errors.Join(k.file.Truncate(int64(whole)), k.file.Sync())
	}
	return nil
}

func passkeyLine(id, account [hashSize]byte, sealed []byte) []byte {
	dst := append(hex.AppendEncode(nil, id[:]), ' ')
	dst = append(hex.AppendEncode(dst, account[:]), ' ')
	return append(base64.RawURLEncoding.AppendEncode(dst, sealed), '\n')
}

func parsePasskey(line []byte) (id, account [hashSize]byte, sealed []byte, ok bool) {
	const hashes = 4*hashSize + 2
	if len(line) <= hashes {
		return id, account, nil, false
	}
	_, err1 := hex.Decode(id[:], line[:2*hashSize])
	_, err2 := hex.Decode(account[:], line[2*hashSize+1:hashes-1])
	sealed, err3 := base64.RawURLEncoding.DecodeString(string(line[hashes : len(line)-1]))
	ok = errors.Join(err1, err2, err3) == nil && bytes.Equal(passkeyLine(id, account, sealed), line)
	return id, account, sealed, ok
}

func (k *passkeys) add(id, account [hashSize]byte, sealed []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.failed != nil:
		return k.failed
	case k.sealed[id] != nil:
		return ErrNoPasskey
	case k.count[account] >= MaxPasskeys:
		return ErrPasskeys
	}
	_, err := k.file.Write(passkeyLine(id, account, sealed))
	if err == nil {
		err = k.file.Sync()
	}
	if err != nil {
		k.failed = fmt.Errorf("keep passkey: %w", err)
		return k.failed
	}
	k.sealed[id] = sealed
	k.count[account]++
	return nil
}
