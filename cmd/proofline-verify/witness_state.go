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
	"github.com/proofline/proofline/verifier/source"
	"github.com/proofline/proofline/verifier/watch"
)

// Files in a witness's directory. The subdirectory store holds its state.
const (
	keyFile  = "key"  // private key, followed by a newline
	logsFile = "logs" // logs to follow, one per line; # begins a comment line
	pinsFile = "pins" // keys of rooms given by their address: address, space, vkey
)

// witnessDir holds the key and the state of a witness.
type witnessDir struct {
	key   witness.Key
	store *witness.Store
}

// openWitnessDir opens or creates the directory of a witness. It refuses a key without state,
// because the key may have made cosignatures that the witness has forgotten, and state without its
// key.
func openWitnessDir(dir, name string) (*witnessDir, error) {
	file, store := filepath.Join(dir, keyFile), filepath.Join(dir, "store")
	key, err := readKey(file)
	isNew := errors.Is(err, fs.ErrNotExist)
	remembered, _ := filepath.Glob(filepath.Join(store, "log", "*")) // the pattern is valid
	switch {
	case err != nil && !isNew:
		return nil, &exit{exitUnreadable, fmt.Errorf("read the key: %w", err),
			"repair " + file + ", or use another directory"}
	case isNew && len(remembered) > 0:
		return nil, &exit{exitUnreadable, fmt.Errorf("the witness has state but no key: %w", err),
			"restore " + file + ", or use another directory"}
	case isNew && name == "":
		return nil, usage(errors.New("a new witness needs a name"), "give one with --name, such as example.org/witness")
	case !isNew && name != "" && name != key.Name():
		return nil, usage(fmt.Errorf("the key in %s belongs to the witness %q", dir, key.Name()),
			"leave out --name, or use another directory")
	}
	if isNew {
		if key, err = newKey(name); err != nil {
			return nil, usage(err, "a name has no spaces and no plus signs, such as example.org/witness")
		}
	} else if _, err := os.Stat(store); err != nil {
		return nil, &exit{exitUnreadable, fmt.Errorf("the witness has a key but no state: %w", err),
			"it may have made cosignatures that are missing now: restore the newest state, " +
				"or start with a new key in another directory"}
	}
	h := &witnessDir{key: key}
	if h.store, err = witness.OpenStore(store); err != nil {
		hint := "give another directory with --dir"
		if errors.Is(err, witness.ErrLocked) {
			hint = "is another witness running with this directory?"
		}
		return nil, &exit{exitUnreadable, err, hint}
	}
	if isNew { // under the store's lock, so that only one process writes a key
		if err := writeKey(file, key); err != nil {
			return nil, errors.Join(&exit{exitUnreadable, fmt.Errorf("write the key: %w", err),
				"use another directory"}, h.store.Close())
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
		return witness.Key{}, fmt.Errorf("other users may read it: its mode is %04o, want 0600", info.Mode().Perm())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return witness.Key{}, err
	}
	return witness.ParseKey(strings.TrimSuffix(string(b), "\n"))
}

// writeKey durably writes a key to a new file.
func writeKey(file string, key witness.Key) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*") // created with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the link below remains
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

// follower determines which logs to follow.
type follower struct {
	dir    string
	given  []string // vkeys and addresses from flags
	log    *slog.Logger
	logged map[string]string // last logged text by subject
}

// known returns the logs whose keys are known.
func (f *follower) known() (witness.Logs, error) {
	vkeys, _, err := f.read()
	if err != nil {
		return nil, err
	}
	return witness.NewLogs(vkeys...)
}

// keep updates the logs that the witness follows from flags and file, until ctx is done.
func (f *follower) keep(ctx context.Context, w *witness.Witness) {
	for tick := time.NewTicker(reloadInterval); ; {
		if logs, err := f.reload(ctx); err != nil {
			f.logError(logsFile, "cannot update the followed logs", err)
		} else {
			w.Follow(logs)
			f.logError(logsFile, "", nil)
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

// reload reads the logs to follow, and pins the keys of new rooms.
func (f *follower) reload(ctx context.Context) (witness.Logs, error) {
	_, unpinned, err := f.read()
	if err != nil {
		return nil, err
	}
	for _, address := range unpinned {
		vkey, err := logKey(ctx, address)
		if err == nil {
			err = f.pin(address, vkey)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		f.logError(address, "cannot follow the room yet", err)
		if err == nil {
			f.log.Info("pinned", "room", address, "key", vkey)
		}
	}
	return f.known()
}

// logError logs an error, unless it is the same as the last one about that subject.
func (f *follower) logError(subject, text string, err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != f.logged[subject] && err != nil && !errors.Is(err, context.Canceled) {
		f.log.Error(text, "about", subject, "error", err)
	}
	f.logged[subject] = said
}

func (f *follower) count(logs int) {
	said := fmt.Sprint(logs)
	if f.logged["count"] != said {
		f.log.Info("following", "logs", logs)
	}
	f.logged["count"] = said
}

// read returns the keys that are given or pinned, and the addresses whose keys are still unknown. A
// text that is neither a key nor an address is an error.
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

// lines returns the lines of a file without empty and comment lines; none if the file does not
// exist.
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

// logKey returns the key that a room, or a log of rooms, has in its first entry and signs its checkpoint with. The
// origin must match the address: otherwise an impostor could have its own key pinned for the log.
func logKey(ctx context.Context, address string) (string, error) {
	src, err := source.HTTP(address, nil)
	if err != nil {
		return "", err
	}
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return "", err
	}
	vkey, err := watch.LogKey(ctx, src, signed)
	if err != nil {
		return "", err
	}
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return "", fmt.Errorf("the log has the invalid key %q: %w", vkey, err)
	}
	head, _, err := audit.OpenCheckpoint(signed, key)
	if err != nil {
		return "", err
	}
	if !named(address, head.Origin) {
		return "", fmt.Errorf("the log calls itself %s: give its verifier key", head.Origin)
	}
	return vkey, nil
}
