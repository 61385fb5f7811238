// Package secret keeps secrets in files that only their owner may read.
package secret

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrExposed is returned when others may read or change a secret's file.
	ErrExposed = errors.New("others on this machine may read it")
	// ErrNotSecret is returned when a file cannot be a secret: not a regular
	// file, empty, or larger than any secret is.
	ErrNotSecret = errors.New("holds no secret")
)

const maxSize = 4 << 10 // bytes of a secret's file

// NewToken returns 32 random bytes in base64url without padding.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read returns the secret in a file, without white space around it. Errors are
// [ErrExposed], [ErrNotSecret] and those of the file system.
func Read(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names it
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read secret: %w", err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("read secret: %s %w: it is not a file", path, ErrNotSecret)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("read secret: %s: %w (mode %04o)", path, ErrExposed, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" || len(text) > maxSize {
		return "", fmt.Errorf("read secret: %s %w: %d bytes", path, ErrNotSecret, len(text))
	}
	return secret, nil
}

// Create writes a secret to a new file, mode 0600, durably and whole or not at
// all. A file that is there stays as it is: the error is [fs.ErrExist].
func Create(path, secret string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("create secret: %w", err)
		}
	}()
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the link stays
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil { // unlike a rename it replaces nothing
		return err
	}
	return syncDir(dir)
}

// Ensure returns the secret in a file, which is made with what newSecret
// returns if it does not exist.
func Ensure(path string, newSecret func() (string, error)) (string, error) {
	secret, err := Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if secret, err = newSecret(); err != nil {
		return "", err
	}
	if err := Create(path, secret); !errors.Is(err, fs.ErrExist) {
		return secret, err
	}
	return Read(path) // another process was quicker
}

// Replace writes a secret to a file as [Create] does, in place of one that is there.
func Replace(path, secret string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace secret: %w", err)
	}
	return Create(path, secret)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // of the file just written
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
