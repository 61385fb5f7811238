// Package evidence keeps what somebody found wrong with a room in one file
// that a third person can check offline: EVIDENCE.md in the folder above
// describes it.
//
// Two kinds are proof: whoever has the room's key knows from the file alone
// that the operator signed two histories. The others are observations: what
// the file says about signed entries is checked, and that the server did not
// show more at the time is the word of whoever wrote the file.
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

// MaxSize is the longest file in bytes.
const MaxSize = 4 << 20

// version is the one version of the file.
const version = 1

var (
	// ErrFormat is returned when a file is no evidence in its one form.
	ErrFormat = errors.New("no evidence file")
	// ErrKey is returned when the file is about another key than the one given.
	ErrKey = errors.New("evidence about another key")
	// ErrUnfounded is returned when a file does not show what it says.
	ErrUnfounded = errors.New("the evidence does not hold")
)

// Kind is what a file is evidence of.
type Kind string

// The kinds of evidence. Fork and Receipt are proof.
const (
	Fork        Kind = "fork"         // two signed checkpoints that cannot both be right
	Receipt     Kind = "receipt"      // an arrival of one signed history has another entry in its place in another one
	Shrink      Kind = "shrink"       // a smaller history was shown after a larger one
	Unproven    Kind = "unproven"     // what was shown does not prove that it continues what was shown before
	Violation   Kind = "violation"    // a signed entry that breaks a rule
	LateFreeze  Kind = "late-freeze"  // a window is over for long, and not frozen
	MissingDraw Kind = "missing-draw" // the round of a frozen window is out for long, and not drawn
)

// Evidence is one file. What is nil or empty is not in it; which kind has what
// is in EVIDENCE.md.
type Evidence struct {
	Version  int            `json:"version"`
	Kind     Kind           `json:"kind"`
	VKey     ticket.Text    `json:"vkey"`             // of the log
	First    ticket.Bytes   `json:"first"`            // signed checkpoint, verbatim
	Second   ticket.Bytes   `json:"second,omitempty"` // another one, shown later or to somebody else
	Root     *audit.Hash    `json:"root,omitempty"`   // that the larger tree has at the size of the smaller
	Growth   ticket.Hashes  `json:"growth,omitzero"`  // consistency proof of Root
	Entry    *ticket.Proven `json:"entry,omitempty"`  // in the tree of First
	Instead  *ticket.Proven `json:"instead,omitempty"`
	Observed *Observation   `json:"observed,omitempty"`
}

// Observation is the word of whoever wrote the file.
type Observation struct {
	Time   ticket.Number  `json:"time"`             // when, in milliseconds since the Unix epoch
	Since  ticket.Number  `json:"since"`            // from when on it was wrong
	Window *ticket.Number `json:"window,omitempty"` // which it is about
	Detail ticket.Text    `json:"detail"`
}

// Parse reads a file. It is written again and must be the same bytes, so that
// there is one file for one content. Everything else is [ErrFormat].
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
		return nil, fmt.Errorf("%w: not in the form it would be written", ErrFormat)
	}
	return e, nil
}

// Marshal returns the file. It fails with [ErrFormat] on what no file can hold.
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
