package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// keeper keeps the last verified checkpoint of a room for the next audit.
type keeper struct {
	t     *terminal
	given string // file of the checkpoint to compare with instead of the kept one; "": none
	file  string // file of the kept checkpoint; "": do not keep
}

func newKeeper(f *auditFlags, t *terminal, origin string) *keeper {
	k := &keeper{t: t, given: f.kept}
	dir := f.state
	if dir == "" {
		dir = stateDir(t.env)
	}
	switch {
	case f.noKeep || origin == "":
	case dir == "":
		t.warn("cannot keep the checkpoint: neither XDG_STATE_HOME nor HOME is set")
	default:
		k.file = filepath.Join(dir, fileName(origin))
	}
	return k
}

// stateDir follows https://specifications.freedesktop.org/basedir-spec/, which ignores relative
// paths.
func stateDir(env func(string) string) string {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "proofline-verify")
	}
	if home := env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "proofline-verify")
	}
	return ""
}

// fileName returns the name of a room's file, readable and unique.
func fileName(origin string) string {
	readable := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, origin)
	readable = strings.TrimLeft(readable[:min(len(readable), 80)], ".")
	return fmt.Sprintf("%s-%x.checkpoint", readable, sha256.Sum256([]byte(origin)))
}

// load returns the checkpoint to compare with; nil if there is none. An unreadable checkpoint is an
// error: the audit must not be mistaken for the first one.
func (k *keeper) load() ([]byte, error) {
	if k.given != "" {
		b, err := os.ReadFile(k.given)
		if err != nil {
			return nil, &exit{exitUnreadable, fmt.Errorf("read the earlier checkpoint: %w", err),
				"--kept takes the name of a file with a checkpoint"}
		}
		return b, nil
	}
	if k.file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &exit{exitUnreadable, fmt.Errorf("read the earlier checkpoint: %w", err),
			"repair the file, or audit with --no-keep"}
	}
	return b, nil
}

// from returns the file that load reads.
func (k *keeper) from() string {
	if k.given != "" {
		return k.given
	}
	return k.file
}

// save keeps a verified checkpoint, unless another run has stored a larger one meanwhile. Errors
// are only warnings, because they do not affect the audit.
func (k *keeper) save(signed []byte) {
	if k.file == "" {
		return
	}
	if b, err := os.ReadFile(k.file); err == nil {
		there, errThere := verifier.Unverified(b)
		mine, errMine := verifier.Unverified(signed)
		if errThere == nil && errMine == nil && there.Size > mine.Size {
			return
		}
	}
	if err := source.WriteFile(k.file, signed); err != nil {
		k.t.warn(fmt.Sprintf("cannot keep the checkpoint for the next audit: %v", err))
	}
}
