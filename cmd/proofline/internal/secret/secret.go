// Package secret stores secrets in files that only their owner may read, and
// refuses to read others. A file of root's may also be readable by its group: that
// is how systemd, Kubernetes and packages hand secrets to a service.
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
	// ErrExposed is returned when other users may read or change a secret's file.
	ErrExposed = errors.New("other users of this machine may read it")
	// ErrNotSecret is returned when a file cannot hold a secret: it is not a regular
	// file, is empty, or is larger than any secret.
	ErrNotSecret = errors.New("holds no secret")
)

const maxSize = 4 << 10 // size of a secret's file, in bytes

// NewToken returns 32 random bytes in base64url without padding.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read returns the secret in a file, without surrounding white space. Errors:
// [ErrExposed], [ErrNotSecret] and file system errors.
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
		return "", fmt.Errorf("read secret: %s %w: not a regular file", path, ErrNotSecret)
	case isExposed(info):
		return "", fmt.Errorf("read secret: %s has mode %04o, %w", path, info.Mode().Perm(), ErrExposed)
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

func isExposed(info fs.FileInfo) bool {
	forbidden := fs.FileMode(0o077)
	if ofRoot(info) {
		forbidden = 0o037
	}
	return info.Mode().Perm()&forbidden != 0
}

// Create writes a secret durably to a new file of mode 0600, whole or not at all.
// It leaves an existing file alone and returns [fs.ErrExist].
func Create(path, secret string) error {
	return write(path, secret, os.Link) // unlike a rename, a link never replaces a file
}

// write writes a secret to a temporary file, which publish gives its path.
func write(path, secret string, publish func(from, to string) error) (err error) {
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
	defer func() { _ = os.Remove(f.Name()) }() // the path remains
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := publish(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

// Ensure returns the secret in a file. If the file does not exist, Ensure creates it
// with the secret that newSecret returns.
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
	return Read(path) // another process created it first
}

// Replace writes a secret as [Create] does, but replaces an existing file. Of several processes that do so at once, the
// last wins.
func Replace(path, secret string) error { return write(path, secret, os.Rename) }

// syncDir makes the file names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the directory of the file just written
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
