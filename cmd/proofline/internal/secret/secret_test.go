package secret

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCreateAndRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "token")
	want := NewToken()
	if b, err := base64.RawURLEncoding.DecodeString(want); err != nil || len(b) != 32 {
		t.Errorf("token %q: %v", want, err)
	}
	if err := Create(path, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); got != want || err != nil {
		t.Errorf("read %q, %v, want %q", got, err, want)
	}
	if err := Create(path, "other"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create again: %v, want ErrExist", err)
	}
	if got, _ := Read(path); got != want {
		t.Errorf("Create replaced the secret by %q", got)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Errorf("files in the directory: %v, %v, want only the secret's", names, err)
	}
}

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	for mode, want := range map[fs.FileMode]error{
		0o600: nil, 0o400: nil, 0o700: nil,
		0o640: ErrExposed, 0o604: ErrExposed, 0o620: ErrExposed, 0o602: ErrExposed, 0o610: ErrExposed, 0o601: ErrExposed,
		0o666: ErrExposed,
	} {
		path := filepath.Join(dir, mode.String())
		if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 { // files of root are in TestReadOfRoot
			if err := os.Chown(path, 1, 1); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := Read(path); !errors.Is(err, want) || (err == nil) != (got == "secret") {
			t.Errorf("mode %v: %q, %v, want %v", mode, got, err, want)
		}
	}
	for name, content := range map[string]string{
		"empty": "", "blank": " \n\t\n", "large": strings.Repeat("x", maxSize+1),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); !errors.Is(err, ErrNotSecret) {
			t.Errorf("%s: %v, want ErrNotSecret", name, err)
		}
	}
	if _, err := Read(dir); !errors.Is(err, ErrNotSecret) {
		t.Errorf("a directory: %v, want ErrNotSecret", err)
	}
	if _, err := Read(filepath.Join(dir, "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v, want ErrNotExist", err)
	}
}

// TestReadOfRoot: the group of a secret that belongs to root may read it, and nobody else.
func TestReadOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of root's")
	}
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[fs.FileMode]error{0o600: nil, 0o640: nil, 0o440: nil, 0o660: ErrExposed, 0o644: ErrExposed,
		0o650: ErrExposed} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); !errors.Is(err, want) {
			t.Errorf("mode %v: %v, want %v", mode, err, want)
		}
	}
}

// TestEnsureOnce: concurrent calls for a missing secret all return the one that was
// stored.
func TestEnsureOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	got := make([]string, 20)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = Ensure(path, func() (string, error) { return NewToken(), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	kept, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != kept {
			t.Errorf("call %d returned %q, the file has %q", i, got[i], kept)
		}
	}
	failing := errors.New("no")
	if _, err := Ensure(path+"2", func() (string, error) { return "", failing }); !errors.Is(err, failing) {
		t.Errorf("ensure when newSecret fails: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(path, func() (string, error) { return NewToken(), nil }); !errors.Is(err, ErrExposed) {
		t.Errorf("ensure of an exposed secret: %v, want ErrExposed", err)
	}
}
