package issuer

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// ErrList is returned for a list of accounts that is malformed, or was made with another secret.
var ErrList = errors.New("not a list of this issuer")

// List is a set of codes or of members, as keyed hashes. A list is text:
//
//	proofline/list/v1 codes|members
//	CHECK
//	FIELD,FIELD
//	made MILLIS
//	HASH
//
// CHECK is a hash that shows whether the list was made with the issuer's secret. The last line repeats, and in a list
// of codes so does the one before it: it begins a batch, with the Unix time at which its codes were made.
type List struct {
	IsCodes bool     // each entry is good for one place
	Fields  []string // names of the values that identify an account, such as "code", or "number" and "birthday"

	name  string
	key   []byte
	known map[[hashSize]byte]int // by entry, the number of its batch from 1; 0: none
	made  []int64                // when each batch was made
}

const (
	listVersion = "proofline/list/v1"
	listCheck   = "check"
	maxFields   = 4
	// unit separates values. [normal] drops it from them.
	unit = "\x1f"
)

// NewList returns an empty list. It returns [ErrList] for impossible fields.
func (i *Issuer) NewList(name string, isCodes bool, fields ...string) (*List, error) {
	l := &List{IsCodes: isCodes, name: name, key: i.Derive("list", name), known: map[[hashSize]byte]int{}}
	for _, f := range fields {
		f = strings.TrimSpace(f)
		if f == "" || len(f) > 64 || slices.Contains(l.Fields, f) || strings.ContainsFunc(f, func(r rune) bool {
			return r == ',' || !unicode.IsPrint(r)
		}) {
			return nil, fmt.Errorf("%w: field %.70q", ErrList, f)
		}
		l.Fields = append(l.Fields, f)
	}
	if len(l.Fields) == 0 || len(l.Fields) > maxFields {
		return nil, fmt.Errorf("%w: want 1 to %d fields", ErrList, maxFields)
	}
	return l, nil
}

// ReadList reads a list that [List.WriteTo] wrote. It returns [ErrList] or the reader's error.
func (i *Issuer) ReadList(name string, r io.Reader) (*List, error) {
	lines := bufio.NewScanner(r)
	line := func() string {
		lines.Scan()
		return lines.Text()
	}
	kind, isVersion := strings.CutPrefix(line(), listVersion+" ")
	check := line()
	if !isVersion || kind != "codes" && kind != "members" {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrList, name), lines.Err())
	}
	l, err := i.NewList(name, kind == "codes", strings.Split(line(), ",")...)
	if err != nil {
		return nil, err
	}
	if check != l.check() {
		return nil, fmt.Errorf("%w: %s was made with another secret, or under another name", ErrList, name)
	}
	for lines.Scan() {
		if made, isBatch := strings.CutPrefix(lines.Text(), "made "); isBatch && l.IsCodes {
			millis, err := strconv.ParseInt(made, 10, 64)
			if err != nil || millis < 0 {
				return nil, fmt.Errorf("%w: %s, batch %d", ErrList, name, len(l.made)+1)
			}
			l.NewBatch(millis)
			continue
		}
		h, err := hex.DecodeString(lines.Text())
		if err != nil || len(h) != hashSize || l.IsCodes && len(l.made) == 0 {
			return nil, fmt.Errorf("%w: %s, entry %d", ErrList, name, len(l.known)+1)
		}
		l.known[[hashSize]byte(h)] = len(l.made)
	}
	return l, lines.Err()
}

// WriteTo writes the list. The order of entries tells nothing about that of the accounts of a batch.
func (l *List) WriteTo(w io.Writer) (int64, error) {
	kind := "members"
	if l.IsCodes {
		kind = "codes"
	}
	text := fmt.Appendf(nil, "%s %s\n%s\n%s\n", listVersion, kind, l.check(), strings.Join(l.Fields, ","))
	written := 0
	begin := func(batch int) {
		for ; written < batch; written++ {
			text = fmt.Appendf(text, "made %d\n", l.made[written])
		}
	}
	for _, h := range slices.SortedFunc(maps.Keys(l.known), func(a, b [hashSize]byte) int {
		return cmp.Or(l.known[a]-l.known[b], bytes.Compare(a[:], b[:]))
	}) {
		begin(l.known[h])
		text = append(hex.AppendEncode(text, h[:]), '\n')
	}
	begin(len(l.made))
	n, err := w.Write(text)
	return int64(n), err
}

func (l *List) check() string { return hex.EncodeToString(keyed(l.key, unit+listCheck)[:hashSize]) }

// Len returns the number of accounts.
func (l *List) Len() int { return len(l.known) }

// NewBatch begins a batch of codes, to which [List.Add] adds.
func (l *List) NewBatch(millis int64) { l.made = append(l.made, millis) }

// Add adds an account; false if a value is empty, or it was in the list before.
func (l *List) Add(values ...string) bool {
	h, ok := l.hash(values)
	if _, has := l.known[h]; has || !ok {
		return false
	}
	l.known[h] = len(l.made)
	return true
}

// Account returns the account that values identify, as [Issuer.Issue] takes it; false if the list does not have it.
func (l *List) Account(values ...string) (string, bool) {
	h, ok := l.hash(values)
	_, has := l.known[h]
	return l.account(h), ok && has
}

func (l *List) account(h [hashSize]byte) string {
	return "list" + unit + l.name + unit + hex.EncodeToString(h[:])
}

// Accounts returns the accounts of codes, and how many of these are not in the list, or repeat another one.
func (l *List) Accounts(codes []string) (accounts []string, unknown int) {
	seen := map[string]bool{}
	for _, code := range codes {
		account, ok := l.Account(code)
		if !ok || seen[account] {
			unknown++
			continue
		}
		seen[account] = true
		accounts = append(accounts, account)
	}
	return accounts, unknown
}

// Batch returns the accounts of a batch, which is numbered from 1.
func (l *List) Batch(number int) (accounts []string) {
	for h, of := range l.known {
		if of == number {
			accounts = append(accounts, l.account(h))
		}
	}
	return accounts
}

func (l *List) hash(values []string) (h [hashSize]byte, ok bool) {
	if len(values) != len(l.Fields) {
		return h, false
	}
	ok = true
	normalized := make([]string, len(values))
	for n, v := range values {
		normalized[n] = normal(v)
		ok = ok && normalized[n] != ""
	}
	return [hashSize]byte(keyed(l.key, strings.Join(normalized, unit))), ok
}

// alphabet is Crockford's, without letters that look like digits or form words with U.
var alphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// NewCode returns a random code of 80 bits, such as "K7QF-9X2M-4TRB-0A8C".
func NewCode() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // never fails
	text := alphabet.EncodeToString(b)
	return strings.Join([]string{text[:4], text[4:8], text[8:12], text[12:]}, "-")
}
