package audit

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is the head of a log at one size.
//
// https://c2sp.org/tlog-checkpoint
type Checkpoint struct {
	Origin string // name of the log and of its key
	Size   uint64 // number of entries, at most MaxSize
	Root   Hash   // Merkle tree hash of the entries
}

// Marshal returns the text to sign: origin, decimal size and base64 root, each on its own line.
func (c Checkpoint) Marshal() string {
	return c.Origin + "\n" + strconv.FormatUint(c.Size, 10) + "\n" + c.Root.String() + "\n"
}

// ParseCheckpoint reads checkpoint text. It fails with ErrCheckpoint on any text that
// [Checkpoint.Marshal] would not write, on an origin that cannot name a key, and on an empty tree
// with a root other than the empty one.
//
// It rejects extension lines. The specification allows them, recommends against them, and leaves
// them out of the text that ML-DSA witnesses sign. Our logs never write them, so an extension line
// in a signed checkpoint is an error.
func ParseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 {
		return Checkpoint{}, fmt.Errorf("%w: %d lines, not 3", ErrCheckpoint, len(lines)-1)
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || size > MaxSize {
		return Checkpoint{}, fmt.Errorf("%w: size %q", ErrCheckpoint, lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: root %q", ErrCheckpoint, lines[2])
	}
	c := Checkpoint{Origin: lines[0], Size: size, Root: root}
	switch {
	case c.Marshal() != text:
		return Checkpoint{}, fmt.Errorf("%w: not canonical", ErrCheckpoint)
	case !validOrigin(c.Origin):
		return Checkpoint{}, fmt.Errorf("%w: origin %q", ErrCheckpoint, c.Origin)
	case size == 0 && root != emptyRoot:
		return Checkpoint{}, fmt.Errorf("%w: root of the empty tree", ErrCheckpoint)
	}
	return c, nil
}

// OpenCheckpoint reads a signed checkpoint. The log must have signed it, and its origin must be the
// name of the log's key. The note's Sigs list the verified signatures of the log and the given
// witnesses, UnverifiedSigs those of unknown keys. Each known key may sign only once, and validly.
// Errors are ErrSignature and ErrCheckpoint.
func OpenCheckpoint(signed []byte, log note.Verifier, witnesses ...note.Verifier) (Checkpoint, *note.Note, error) {
	known := note.VerifierList(append(slices.Clone(witnesses), log)...)
	n, err := note.Open(signed, known)
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("open checkpoint: %w: %w", ErrSignature, err)
	}
	byLog := func(s note.Signature) bool { return s.Name == log.Name() && s.Hash == log.KeyHash() }
	if !slices.ContainsFunc(n.Sigs, byLog) {
		return Checkpoint{}, nil, fmt.Errorf("open checkpoint: %w: not by %s", ErrSignature, log.Name())
	}
	if err := checkLines(signed, known); err != nil {
		return Checkpoint{}, nil, fmt.Errorf("open checkpoint: %w: %w", ErrSignature, err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, nil, fmt.Errorf("open checkpoint: %w", err)
	}
	if c.Origin != log.Name() {
		return Checkpoint{}, nil, fmt.Errorf("open checkpoint: %w: origin %q, key %q", ErrSignature,
			c.Origin, log.Name())
	}
	return c, n, nil
}

// UnverifiedCheckpoint reads a signed checkpoint without a key. It checks the form like
// [OpenCheckpoint], but no signatures. The error is ErrCheckpoint.
func UnverifiedCheckpoint(signed []byte) (Checkpoint, error) {
	none := note.VerifierList()
	_, err := note.Open(signed, none)
	unverified, ok := errors.AsType[*note.UnverifiedNoteError](err)
	if !ok {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if err := checkLines(signed, none); err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	return ParseCheckpoint(unverified.Note.Text)
}

// checkLines rejects two cases that note.Open accepts: non-canonical base64 in a signature line,
// and a second line of a known key, which note.Open does not verify.
//
// https://www.rfc-editor.org/rfc/rfc4648.html#section-3.5
func checkLines(signed []byte, known note.Verifiers) error {
	seen := map[string]bool{}
	for line := range strings.Lines(string(signed[bytes.LastIndex(signed, []byte("\n\n"))+2:])) {
		name, text, _ := strings.Cut(strings.TrimPrefix(line, "— "), " ")
		sig, err := decodeBase64(strings.TrimSuffix(text, "\n"))
		if err != nil {
			return err
		}
		id := sig[:4]
		if _, err := known.Verifier(name, binary.BigEndian.Uint32(id)); err != nil {
			continue
		}
		key := name + "+" + string(id)
		if seen[key] {
			return fmt.Errorf("two signatures by %s+%x", name, id)
		}
		seen[key] = true
	}
	return nil
}

// decodeBase64 reads canonical base64.
func decodeBase64(text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(b) != text {
		return nil, errors.New("base64 not canonical")
	}
	return b, nil
}

// ParseKey reads the canonical vkey of a log. The error is ErrKey.
//
// https://c2sp.org/signed-note#verifier-keys
func ParseKey(vkey string) (note.Verifier, error) {
	key, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w: %w", vkey, ErrKey, err)
	}
	encoded, ok := strings.CutPrefix(vkey, fmt.Sprintf("%s+%08x+", key.Name(), key.KeyHash()))
	if _, err := decodeBase64(encoded); !ok || err != nil || !validOrigin(key.Name()) {
		return nil, fmt.Errorf("key %q: %w: not canonical", vkey, ErrKey)
	}
	return key, nil
}

// validOrigin reports whether the origin can also be the name of a key: non-empty UTF-8 without
// spaces, plus signs and control characters.
//
// https://c2sp.org/signed-note#format
func validOrigin(origin string) bool {
	bad := func(r rune) bool { return r < 0x20 || r == '+' || unicode.IsSpace(r) }
	return origin != "" && utf8.ValidString(origin) && !strings.ContainsFunc(origin, bad)
}
