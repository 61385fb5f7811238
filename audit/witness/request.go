package witness

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/audit"
)

const (
	// MaxRequest is the maximum size of a request body in bytes: a proof, and a checkpoint with 24
	// ML-DSA signatures besides the log's.
	MaxRequest = 1 << 17
	// MaxProof is the maximum number of hashes in a proof.
	MaxProof = 63
)

// Request asks a witness to cosign a checkpoint.
//
// https://c2sp.org/tlog-witness#add-checkpoint
type Request struct {
	Old        uint64       // size of the checkpoint that the witness has; 0: none
	Proof      []audit.Hash // consistency proof from Old, at most MaxProof hashes
	Checkpoint []byte       // signed, verbatim
}

// Marshal returns the body of the request.
func (r Request) Marshal() []byte {
	b := strconv.AppendUint([]byte("old "), r.Old, 10)
	for _, h := range r.Proof {
		b = base64.StdEncoding.AppendEncode(append(b, '\n'), h[:])
	}
	return append(append(b, "\n\n"...), r.Checkpoint...)
}

// ParseRequest reads the output of [Request.Marshal] and fails with ErrMalformed on anything else.
// It does not look into the checkpoint.
func ParseRequest(body []byte) (Request, error) {
	before, checkpoint, ok := bytes.Cut(body, []byte("\n\n"))
	lines := strings.Split(string(before), "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	if !ok || !isOld {
		return Request{}, fmt.Errorf("%w: want a line with the old size, a proof, an empty line, a checkpoint",
			ErrMalformed)
	}
	if len(lines)-1 > MaxProof {
		return Request{}, fmt.Errorf("%w: a proof of %d hashes", ErrMalformed, len(lines)-1)
	}
	old, err := strconv.ParseUint(size, 10, 64)
	if err != nil {
		return Request{}, fmt.Errorf("%w: old size %q", ErrMalformed, size)
	}
	r := Request{Old: old, Checkpoint: bytes.Clone(checkpoint)}
	for _, line := range lines[1:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			return Request{}, fmt.Errorf("%w: hash %q", ErrMalformed, line)
		}
		r.Proof = append(r.Proof, h)
	}
	if !bytes.Equal(r.Marshal(), body) {
		return Request{}, fmt.Errorf("%w: not canonical", ErrMalformed)
	}
	return r, nil
}

// parseCheckpoint reads the checkpoint text of any log. Unlike [audit.ParseCheckpoint] it accepts
// extension lines. It does not check the root of an empty tree either: the protocol has a different
// status for that, so the consistency check does it.
//
// https://c2sp.org/tlog-checkpoint#note-text
func parseCheckpoint(text string) (audit.Checkpoint, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 || slices.Contains(lines, "") {
		return audit.Checkpoint{}, fmt.Errorf("%w: checkpoint of %d lines, or with an empty one",
			ErrMalformed, len(lines))
	}
	size, err := strconv.ParseUint(lines[1], 10, 64)
	if err != nil || size > audit.MaxSize {
		return audit.Checkpoint{}, fmt.Errorf("%w: size %q", ErrMalformed, lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return audit.Checkpoint{}, fmt.Errorf("%w: root %q", ErrMalformed, lines[2])
	}
	c := audit.Checkpoint{Origin: lines[0], Size: size, Root: root}
	if !strings.HasPrefix(text, c.Marshal()) {
		return audit.Checkpoint{}, fmt.Errorf("%w: checkpoint not canonical", ErrMalformed)
	}
	return c, nil
}

// verified returns a note with only its verified signatures, in canonical base64.
func verified(n *note.Note) []byte {
	b := append([]byte(n.Text), '\n')
	for _, s := range n.Sigs {
		sig, _ := base64.StdEncoding.DecodeString(s.Base64) // verifying it has already decoded it
		b = append(b, "— "+s.Name+" "+base64.StdEncoding.EncodeToString(sig)+"\n"...)
	}
	return b
}
