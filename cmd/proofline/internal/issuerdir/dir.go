// Package issuerdir keeps an issuer's secret, keys and lists in a directory, beside the records of
// [issuer.Store]:
//
//	secret               32 random bytes, from which other keys are derived
//	blind-OFFER.pem      RSA key of an offer
//	lists/NAME.list      codes or members, as keyed hashes
//	lists/lock           held while a list is changed
package issuerdir

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/filelock"
)

// Dir is the path of an issuer's directory.
type Dir string

const another = "choose another directory with --data"

// Issuer returns the issuer of the directory, whose secret is created at the first call. store may be nil: then it
// cannot issue.
func (d Dir) Issuer(store *issuer.Store) (*issuer.Issuer, error) {
	b, err := d.secret()
	if err != nil {
		return nil, err
	}
	return issuer.New(b, store)
}

// secret returns the issuer's secret, which it creates at the first call.
func (d Dir) secret() ([]byte, error) {
	if err := os.MkdirAll(d.file("lists"), 0o700); err != nil {
		return nil, cli.Failed(err, another)
	}
	text, err := d.ensure("secret", func() (string, error) {
		b := make([]byte, issuer.SecretSize)
		_, _ = rand.Read(b) // never fails
		return hex.EncodeToString(b), nil
	})
	if err != nil {
		return nil, err
	}
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != issuer.SecretSize {
		return nil, cli.Failed(fmt.Errorf("%s is not an issuer's secret", d.file("secret")), another)
	}
	return b, nil
}

// BlindKey returns the key for the blind signatures of an offer, which it creates at the first call.
func (d Dir) BlindKey(offer string) (*rsa.PrivateKey, error) {
	text, err := d.ensure(blindFile(offer), func() (string, error) {
		key, err := rsa.GenerateKey(rand.Reader, issuer.ModulusBits)
		if err != nil {
			return "", err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
	})
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode([]byte(text))
	if block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, cli.Failed(fmt.Errorf("%s has no RSA key", d.file(blindFile(offer))), "")
}

// HasBlindKey reports whether an offer has a key for blind signatures.
func (d Dir) HasBlindKey(offer string) bool {
	_, err := os.Stat(d.file(blindFile(offer)))
	return err == nil
}

func blindFile(offer string) string { return "blind-" + offer + ".pem" }

func (d Dir) ensure(name string, create func() (string, error)) (string, error) {
	path := d.file(name)
	text, err := secret.Ensure(path, create)
	if errors.Is(err, secret.ErrExposed) {
		return "", cli.Failed(err, "restrict it to its owner: chmod 600 "+path)
	}
	if err != nil {
		return "", cli.Failed(err, "")
	}
	return text, nil
}

func (d Dir) file(name string) string { return filepath.Join(string(d), name) }

// listForm matches names of lists: those of the configuration, and ROOM.METHOD for a server's own issuer.
var listForm = regexp.MustCompile(`^[a-z0-9-]{1,63}(\.[a-z0-9-]{1,32})?$`)

func (d Dir) listPath(name string) (string, error) {
	if !listForm.MatchString(name) {
		return "", cli.Usage(fmt.Errorf("%.40q is not the name of a list", name), "use a-z, 0-9 and -")
	}
	return filepath.Join(d.file("lists"), name+".list"), nil
}

// List reads a list. It returns [fs.ErrNotExist] if there is no such list.
func (d Dir) List(i *issuer.Issuer, name string) (*issuer.List, error) {
	path, err := d.listPath(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path) //nolint:gosec // listPath checks the name
	if err != nil {
		return nil, err
	}
	return i.ReadList(name, bytes.NewReader(text))
}

// Written returns when a list was written, and how long it is. It returns [fs.ErrNotExist] if there is no such list.
func (d Dir) Written(name string) (at time.Time, size int64, err error) {
	path, err := d.listPath(name)
	if err != nil {
		return at, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return at, 0, err
	}
	return info.ModTime(), info.Size(), nil
}

// AddCodes makes codes and adds them to a list, which it creates if necessary. It returns the codes, which are
// stored nowhere, and the length of the list.
func (d Dir) AddCodes(i *issuer.Issuer, name string, count int) (codes []string, total int, err error) {
	err = d.Change(i, name, func(l *issuer.List) (*issuer.List, error) {
		if l == nil {
			if l, err = i.NewList(name, true, "code"); err != nil {
				return nil, err
			}
		}
		if !l.IsCodes {
			return nil, ErrMembers
		}
		l.NewBatch(time.Now().UnixMilli())
		for range count {
			code := issuer.NewCode()
			l.Add(code)
			codes = append(codes, code)
		}
		total = l.Len()
		return l, nil
	})
	return codes, total, err
}

// ErrMembers is returned when codes are added to a list of members, and ErrCodes when members are to replace codes.
var (
	ErrMembers = errors.New("the list has members")
	ErrCodes   = errors.New("the list has codes")
)

// Members describes a list of members that was made of rows.
type Members struct {
	Count   int   // members
	Before  int   // members of the list that it replaces
	LeftOut []int // numbers of the rows, from 1, that lack a value or repeat a member
}

// SetMembers replaces the members of a list by rows of values, which the columns name; with check it only reads them.
// Errors: [issuer.ErrList] for impossible columns, and [ErrCodes].
func (d Dir) SetMembers(i *issuer.Issuer, name string, columns []string, rows [][]string,
	check bool) (m Members, err error) {
	read := func(before *issuer.List) (*issuer.List, error) {
		m = Members{}
		if before != nil {
			if m.Before = before.Len(); before.IsCodes {
				return nil, ErrCodes
			}
		}
		list, err := i.NewList(name, false, columns...)
		if err != nil {
			return nil, err
		}
		for n, row := range rows {
			if !list.Add(row...) {
				m.LeftOut = append(m.LeftOut, n+1)
			}
		}
		m.Count = list.Len()
		return list, nil
	}
	if !check {
		return m, d.Change(i, name, read)
	}
	before, err := d.List(i, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		_, err = read(before)
	}
	return m, err
}

// Attempts to lock the lists, which another process holds for the time that it takes to write one.
const (
	lockAttempts = 100
	lockInterval = 50 * time.Millisecond
)

// Change replaces a list by what change makes of it, whole or not at all. A new list is nil. Of
// two changes, by any processes, the second one waits.
func (d Dir) Change(i *issuer.Issuer, name string, change func(*issuer.List) (*issuer.List, error)) error {
	path, err := d.listPath(name)
	if err != nil {
		return err
	}
	lock, err := d.lockLists()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	l, err := d.List(i, name)
	if errors.Is(err, fs.ErrNotExist) {
		l, err = nil, nil
	}
	if err != nil {
		return err
	}
	if l, err = change(l); err != nil {
		return err
	}
	temp, err := os.CreateTemp(d.file("lists"), ".list-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = l.WriteTo(temp)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// RemoveLists removes the lists that are used no longer, and returns how many entries they had; with check, it only
// counts them.
func (d Dir) RemoveLists(isOver func(name string) bool, check bool) (entries int64, err error) {
	lock, err := d.lockLists()
	if err != nil {
		return 0, err
	}
	defer func() { _ = lock.Close() }()
	files, err := filepath.Glob(filepath.Join(d.file("lists"), "*.list"))
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		if !isOver(strings.TrimSuffix(filepath.Base(path), ".list")) {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // in the issuer's directory
		if err == nil && !check {
			err = os.Remove(path)
		}
		if err != nil {
			return entries, err
		}
		const head = 3 // lines before the first entry
		entries += max(0, int64(bytes.Count(text, []byte("\n"))-head))
	}
	return entries, nil
}

func (d Dir) lockLists() (*os.File, error) {
	for n := 0; ; n++ {
		lock, err := filelock.Lock(filepath.Join(d.file("lists"), "lock"))
		if !errors.Is(err, filelock.ErrLocked) || n == lockAttempts {
			return lock, err
		}
		time.Sleep(lockInterval)
	}
}
