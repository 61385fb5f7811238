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
	"strconv"
	"strings"
	"sync"
	"time"
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

// passkeys are the records of passkeys, in a file. A line has the keyed hashes of a passkey's id and of its account in
// hex, the day of its latest use, and its record in base64, sealed. Of an id's lines, the last one counts.
type passkeys struct {
	file *os.File

	mu     sync.Mutex
	known  map[[hashSize]byte]keptPasskey // by id
	count  map[[hashSize]byte]int         // by account
	failed error                          // of a write: nothing can be added until the file is opened again
}

// keptPasskey is the record of a passkey.
type keptPasskey struct {
	account [hashSize]byte
	day     int64 // of the latest use, since the Unix epoch
	sealed  []byte
}

// dayOf returns the day of a time, since the Unix epoch.
func dayOf(at time.Time) int64 { return at.Unix() / (24 * 60 * 60) }

// KeepPasskey stores a passkey under its id. When it returns, the record is on the disk. It returns [ErrPasskeys],
// [ErrNoPasskey] for an id that another account has, or an error of the store.
func (i *Issuer) KeepPasskey(id []byte, p Passkey, now time.Time) error {
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
	sealed := sealing.Seal(nil, nil, text, name[:]) //nolint:gosec // the AEAD draws a nonce itself
	return k.add(name, keptPasskey{account, dayOf(now), sealed})
}

// UsedPasskey notes the day on which a passkey was used.
func (i *Issuer) UsedPasskey(id []byte, now time.Time) error {
	k, err := i.store.openPasskeys()
	if err != nil {
		return err
	}
	name := i.passkeyName(id)
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.known[name]
	if !ok || p.day >= dayOf(now) {
		return nil
	}
	p.day = dayOf(now)
	return k.write(name, p)
}

// Passkey returns the passkey with an id, or [ErrNoPasskey].
func (i *Issuer) Passkey(id []byte) (Passkey, error) {
	k, err := i.store.openPasskeys()
	if err != nil {
		return Passkey{}, err
	}
	name := i.passkeyName(id)
	k.mu.Lock()
	kept, ok := k.known[name]
	k.mu.Unlock()
	if !ok {
		return Passkey{}, ErrNoPasskey
	}
	sealing, err := i.passkeySealing()
	if err != nil {
		return Passkey{}, err
	}
	text, err := sealing.Open(nil, nil, kept.sealed, name[:])
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
	path := s.passkeyFile()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // in the store's directory
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	k := &passkeys{file: f, known: map[[hashSize]byte]keptPasskey{}, count: map[[hashSize]byte]int{}}
	if err := errors.Join(k.load(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), f.Close())
	}
	s.passkeys = k
	return k, nil
}

func (s *Store) passkeyFile() string { return filepath.Join(filepath.Dir(s.dir), "passkeys.log") }

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
		id, p, ok := parsePasskey(line)
		if !ok {
			return fmt.Errorf("%w: %s, line %d", ErrStore, k.file.Name(), n+1)
		}
		k.set(id, p)
	}
	if whole < len(text) {
		return errors.Join(k.file.Truncate(int64(whole)), k.file.Sync())
	}
	return nil
}

func (k *passkeys) set(id [hashSize]byte, p keptPasskey) {
	if _, ok := k.known[id]; !ok {
		k.count[p.account]++
	}
	k.known[id] = p
}

func passkeyLine(id [hashSize]byte, p keptPasskey) []byte {
	dst := append(hex.AppendEncode(nil, id[:]), ' ')
	dst = append(hex.AppendEncode(dst, p.account[:]), ' ')
	dst = append(strconv.AppendInt(dst, p.day, 10), ' ')
	return append(base64.RawURLEncoding.AppendEncode(dst, p.sealed), '\n')
}

func parsePasskey(line []byte) (id [hashSize]byte, p keptPasskey, ok bool) {
	const hashes = 4*hashSize + 2
	if len(line) <= hashes {
		return id, p, false
	}
	day, sealed, _ := strings.Cut(string(line[hashes:len(line)-1]), " ")
	_, err1 := hex.Decode(id[:], line[:2*hashSize])
	_, err2 := hex.Decode(p.account[:], line[2*hashSize+1:hashes-1])
	var err3, err4 error
	p.day, err3 = strconv.ParseInt(day, 10, 64)
	p.sealed, err4 = base64.RawURLEncoding.DecodeString(sealed)
	ok = errors.Join(err1, err2, err3, err4) == nil && bytes.Equal(passkeyLine(id, p), line)
	return id, p, ok
}

func (k *passkeys) add(id [hashSize]byte, p keptPasskey) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, isKnown := k.known[id]
	switch {
	case isKnown:
		return ErrNoPasskey
	case k.count[p.account] >= MaxPasskeys:
		return ErrPasskeys
	}
	return k.write(id, p)
}

// write stores a line. The caller holds mu.
func (k *passkeys) write(id [hashSize]byte, p keptPasskey) error {
	if k.failed != nil {
		return k.failed
	}
	_, err := k.file.Write(passkeyLine(id, p))
	if err == nil {
		err = k.file.Sync()
	}
	if err != nil {
		k.failed = fmt.Errorf("keep passkey: %w", err)
		return k.failed
	}
	k.set(id, p)
	return nil
}
