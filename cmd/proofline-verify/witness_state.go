package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// Files in the directory of a witness. Beside them, store is its memory.
const (
	keyFile  = "key"  // private key, and a newline
	logsFile = "logs" // what to follow, one a line; lines with # are comments
	pinsFile = "pins" // keys of rooms given by their address: address, space, vkey
)

// house is the key and the memory of a witness.
type house struct {
	key   witness.Key
	store *witness.Store
}

// openHouse opens the directory of a witness, or makes it. A key without a
// memory is refused: it may have cosigned what nobody remembers. So is a memory
// without the key it is of.
func openHouse(dir, name string) (*house, error) {
	file, store := filepath.Join(dir, keyFile), filepath.Join(dir, "store")
	key, err := readKey(file)
	isNew := errors.Is(err, fs.ErrNotExist)
	remembered, _ := filepath.Glob(filepath.Join(store, "log", "*")) // the pattern is right
	switch {
	case err != nil && !isNew:
		return nil, &exit{exitUnreadable, fmt.Errorf("read the key: %w", err), "repair " + file + ", or use another directory"}
	case isNew && len(remembered) > 0:
		return nil, &exit{exitUnreadable, fmt.Errorf("the witness has a memory and no key: %w", err), "put back " + file + ", or use another directory"}
	case isNew && name == "":
		return nil, usage(errors.New("a new witness needs a name"), "give one with --name, such as example.org/witness")
	case !isNew && name != "" && name != key.Name():
		return nil, usage(fmt.Errorf("the key in %s is of the witness %q", dir, key.Name()), "leave out --name, or use another directory")
	}
	if isNew {
		if key, err = newKey(name); err != nil {
			return nil, usage(err, "a name has no spaces and no plus signs, such as example.org/witness")
		}
	} else if _, err := os.Stat(store); err != nil {
		return nil, &exit{exitUnreadable, fmt.Errorf("the witness has a key and no memory: %w", err),
			"it may have cosigned what it forgot: put back the newest state, or begin with a new key in another directory"}
	}
	h := &house{key: key}
	if h.store, err = witness.OpenStore(store); err != nil {
		hint := "give another directory with --dir"
		if errors.Is(err, witness.ErrLocked) {
			hint = "is another witness running with this directory?"
		}
		return nil, &exit{exitUnreadable, err, hint}
	}
	if isNew { // under the lock of the store, so that there is one
		if err := writeKey(file, key); err != nil {
			return nil, errors.Join(&exit{exitUnreadable, fmt.Errorf("write the key: %w", err), "use another directory"}, h.store.Close())
		}
	}
	return h, nil
}

func newKey(name string) (witness.Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails
	return witness.NewKey(name, seed)
}

func readKey(file string) (witness.Key, error) {
	info, err := os.Stat(file)
	if err != nil {
		return witness.Key{}, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return witness.Key{}, fmt.Errorf("others may read it: its mode is %04o, not 0600", info.Mode().Perm())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return witness.Key{}, err
	}
	return witness.ParseKey(strings.TrimSuffix(string(b), "\n"))
}

// writeKey writes a key that a power cut leaves whole, and replaces none.
func writeKey(file string, key witness.Key) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the link stays
	_, err = f.WriteString(key.Marshal() + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// follower finds out which logs to follow.
type follower struct {
	dir   string
	given []string // by flags: vkeys and addresses
	log   *slog.Logger
	told  map[string]string // what was logged last, by subject
}

// known returns the logs whose keys are at hand.
func (f *follower) known() (witness.Logs, error) {
	vkeys, _, err := f.read()
	if err != nil {
		return nil, err
	}
	return witness.NewLogs(vkeys...)
}

// keep makes the witness follow what flags and file say, until the context is done.
func (f *follower) keep(ctx context.Context, w *witness.Witness) {
	for tick := time.NewTicker(reloadEvery); ; {
		if logs, err := f.reload(ctx); err != nil {
			f.tell(logsFile, "followed logs stay as they are", err)
		} else {
			w.Follow(logs)
			f.tell(logsFile, "", nil)
			f.count(len(logs))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

// reload reads what to follow, and pins the keys of rooms that are new.
func (f *follower) reload(ctx context.Context) (witness.Logs, error) {
	_, unpinned, err := f.read()
	if err != nil {
		return nil, err
	}
	for _, address := range unpinned {
		vkey, err := roomKey(ctx, address)
		if err == nil {
			err = f.pin(address, vkey)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f.tell(address, "room not followed yet", err)
		if err == nil {
			f.log.Info("pinned", "room", address, "key", vkey)
		}
	}
	return f.known()
}

// tell logs an error once, until it changes.
func (f *follower) tell(subject, text string, err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != f.told[subject] && err != nil && !errors.Is(err, context.Canceled) {
		f.log.Error(text, "about", subject, "error", err)
	}
	f.told[subject] = said
}

func (f *follower) count(logs int) {
	said := fmt.Sprint(logs)
	if f.told["count"] != said {
		f.log.Info("following", "logs", logs)
	}
	f.told["count"] = said
}

// read returns the keys that are given or pinned, and the addresses that have
// none. Every text is one or the other, or the error says which is not.
func (f *follower) read() (vkeys, unpinned []string, err error) {
	pins, err := f.pins()
	if err != nil {
		return nil, nil, err
	}
	lines, err := f.lines(logsFile)
	if err != nil {
		return nil, nil, err
	}
	for _, text := range slices.Concat(f.given, lines) {
		if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
			if _, err := source.HTTP(text, nil); err != nil {
				return nil, nil, err
			}
			if vkey, ok := pins[text]; ok {
				vkeys = append(vkeys, vkey)
			} else if !slices.Contains(unpinned, text) {
				unpinned = append(unpinned, text)
			}
			continue
		}
		if _, err := audit.ParseKey(text); err != nil {
			return nil, nil, fmt.Errorf("%q is neither a verifier key nor an address", text)
		}
		vkeys = append(vkeys, text)
	}
	return vkeys, unpinned, nil
}

// lines returns the lines of a file that say something, none if there is no file.
func (f *follower) lines(name string) (lines []string, err error) {
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, err
}

func (f *follower) pins() (map[string]string, error) {
	lines, err := f.lines(pinsFile)
	pins := map[string]string{}
	for _, line := range lines {
		address, vkey, ok := strings.Cut(line, " ")
		if _, err := audit.ParseKey(vkey); err != nil || !ok {
			return nil, fmt.Errorf("%s: %q is not an address and a verifier key", filepath.Join(f.dir, pinsFile), line)
		}
		pins[address] = vkey
	}
	return pins, err
}

func (f *follower) pin(address, vkey string) error {
	pins, err := f.pins()
	if err != nil {
		return err
	}
	pins[address] = vkey
	var b strings.Builder
	for _, address := range slices.Sorted(maps.Keys(pins)) {
		fmt.Fprintf(&b, "%s %s\n", address, pins[address])
	}
	return source.WriteFile(filepath.Join(f.dir, pinsFile), []byte(b.String()))
}

// roomKey reads the key that a room names in its first entry and has signed its
// checkpoint with. The room must be the one of the address: else anybody could
// have a key of theirs pinned for somebody else's room.
func roomKey(ctx context.Context, address string) (string, error) {
	src, err := source.HTTP(address, nil)
	if err != nil {
		return "", err
	}
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return "", err
	}
	first := audit.Tile{Level: -1, Width: int(min(audit.TileWidth, head.Size))}
	if first.Width == 0 {
		return "", errors.New("the room has no entries yet")
	}
	bundle, err := src.Tile(ctx, first)
	if err != nil {
		return "", err
	}
	var entries []fairness.Entry
	err = audit.SplitBundle(bundle, first.Width, func(b []byte) error {
		if len(entries) > 0 {
			return nil
		}
		e, err := fairness.ParseEntry(b)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return "", err
	}
	room, ok := entries[0].(*fairness.Room)
	if !ok {
		return "", errors.New("the log does not begin with a room")
	}
	key, err := audit.ParseKey(room.LogKey)
	if err != nil {
		return "", fmt.Errorf("the room names the key %q: %w", room.LogKey, err)
	}
	if head, _, err = audit.OpenCheckpoint(signed, key); err != nil {
		return "", err
	}
	if !named(address, head.Origin) {
		return "", fmt.Errorf("the room calls itself %s: give its verifier key", head.Origin)
	}
	return room.LogKey, nil
}
