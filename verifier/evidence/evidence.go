// Package evidence reads and writes files with evidence of a room's misbehaviour, which third
// parties can check offline. EVIDENCE.md in the folder above specifies them.
//
// Two kinds are proof: with the room's key, the file alone shows that the operator signed two
// histories. The others are observations: the signed entries in the file can be checked, but only
// the file's author says what the server showed at the time.
//
// The package is pure: no clock, no network, no randomness.
package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier/ticket"
)

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 4 << 20

// version is the only version of the file.
const version = 1

var (
	// ErrFormat is returned for a file that is not evidence in canonical form.
	ErrFormat = errors.New("not an evidence file")
	// ErrKey is returned for a file about a key other than the given one.
	ErrKey = errors.New("evidence about another key")
	// ErrUnfounded is returned for a file that does not show what it claims.
	ErrUnfounded = errors.New("the evidence is wrong")
)

// Kind is the kind of evidence in a file.
type Kind string

// The kinds of evidence. Fork and Receipt are proof.
const (
	Fork Kind = "fork" // two signed checkpoints that contradict each other
	// an arrival in one signed history has a different entry in its place in another one
	Receipt     Kind = "receipt"
	Shrink      Kind = "shrink"       // a smaller history was shown after a larger one
	Unproven    Kind = "unproven"     // the later history is not proven to continue the earlier one
	Violation   Kind = "violation"    // a signed entry that breaks a rule
	LateFreeze  Kind = "late-freeze"  // a window ended long ago but is not frozen
	MissingDraw Kind = "missing-draw" // the round of a frozen window appeared long ago, but the window is not drawn
)

// Evidence is one file. Nil and empty members are left out; EVIDENCE.md lists the members of each
// kind.
type Evidence struct {
	Version  int            `json:"version"`
	Kind     Kind           `json:"kind"`
	VKey     ticket.Text    `json:"vkey"`             // key of the log
	First    ticket.Bytes   `json:"first"`            // signed checkpoint, verbatim
	Second   ticket.Bytes   `json:"second,omitempty"` // another checkpoint, shown later or to another person
	Root     *audit.Hash    `json:"root,omitempty"`   // root of the larger tree at the size of the smaller
	Growth   ticket.Hashes  `json:"growth,omitzero"`  // consistency proof of Root
	Entry    *ticket.Proven `json:"entry,omitempty"`  // entry in the tree of First
	Instead  *ticket.Proven `json:"instead,omitempty"`
	Observed *Observation   `json:"observed,omitempty"`
}

// Observation is a claim of the file's author.
type Observation struct {
	Time   ticket.Number  `json:"time"`             // time of the observation, in milliseconds since the Unix epoch
	Since  ticket.Number  `json:"since"`            // time from which on the server was at fault
	Window *ticket.Number `json:"window,omitempty"` // window in question
	Detail ticket.Text    `json:"detail"`
}

// Parse reads a file. It writes the file again and compares the bytes, so that each content has
// exactly one file. Any other file returns [ErrFormat].
func Parse(file []byte) (*Evidence, error) {
	if len(file) > MaxSize {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrFormat, MaxSize)
	}
	var which struct{ Version, Kind json.RawMessage }
	if err := json.Unmarshal(file, &which); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if string(which.Version) != strconv.Itoa(version) || which.Kind == nil {
		return nil, fmt.Errorf("%w of version %d: it says %.20q", ErrFormat, version, which.Version)
	}
	e := new(Evidence)
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if again, err := e.Marshal(); err != nil || !bytes.Equal(again, file) {
		return nil, fmt.Errorf("%w: not in canonical form", ErrFormat)
	}
	return e, nil
}

// Marshal returns the file. It fails with [ErrFormat] if the content does not fit into a file.
func (e *Evidence) Marshal() ([]byte, error) {
	e.Version = version
	var file bytes.Buffer
	enc := json.NewEncoder(&file)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if file.Len() > MaxSize {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrFormat, MaxSize)
	}
	return file.Bytes(), nil
}
