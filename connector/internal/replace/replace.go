// Package replace replaces files atomically.
package replace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// File replaces a file atomically.
func File(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".proofline-*")
	if err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
