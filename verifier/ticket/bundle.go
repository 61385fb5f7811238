package ticket

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
)

// MaxSize is the longest file in bytes.
const MaxSize = 16 << 20

// version is the one version of the file.
const version = 1

// ErrBundle is returned when a file is no proof in its one form.
var ErrBundle = errors.New("not a saved proof")

// Bundle is a visitor's proof: what the visitor holds, and what the room has
// published about it. What is nil is not in the file. A secret never is.
type Bundle struct {
	Version    int          `json:"version"`
	Origin     Text         `json:"origin"`         // of the room
	VKey       *Text        `json:"vkey,omitempty"` // key of the log, as the visitor was given it
	Ticket     Text         `json:"ticket"`         // canonical
	Receipt    Bytes        `json:"receipt"`
	Shown      *Number      `json:"shown,omitempty"` // the position that the visitor was shown
	Checkpoint Bytes        `json:"checkpoint"`
	Room       *Proven      `json:"room,omitempty"`
	Arrive     *Proven      `json:"arrive,omitempty"`
	Growth     Hashes       `json:"growth,omitzero"` // from the receipt's tree to the checkpoint's
	Amends     List[Proven] `json:"amends"`          // of the schedule, as far as known
	Freeze     *Proven      `json:"freeze,omitempty"`
	Frozen     Hashes       `json:"frozen,omitzero"` // from the tree that the freeze names to the checkpoint's
	Draw       *Proven      `json:"draw,omitempty"`
	FirstPlace *Run         `json:"first_place,omitempty"` // from after the draw up to the window's first place
	Place      *Proven      `json:"place,omitempty"`
	Earlier    List[Proven] `json:"earlier,omitzero"`    // the freezes of all earlier windows, if they are to be checked
	Malformed  *Text        `json:"malformed,omitempty"` // what the page found malformed, in its words
	GaveUp     bool         `json:"gave_up,omitempty"`   // a search ended before the log did
}

// Proven is an entry with the inclusion proof that it stands at an index of
// the checkpoint's tree.
type Proven struct {
	Index Number `json:"index"`
	Entry Bytes  `json:"entry"`
	Path  Hashes `json:"path"`
}

// Run is entries without gaps, with the proof that they stand in the
// checkpoint's tree from an index on.
type Run struct {
	First   Number      `json:"first"`
	Entries List[Bytes] `json:"entries"`
	Proof   Hashes      `json:"proof"`
}

// Parse reads a file. It is written again and must be the same bytes, so that
// there is one file for one content: nothing twice, unknown, in other case or
// after the end. Everything else is [ErrBundle].
func Parse(file []byte) (*Bundle, error) {
	if len(file) > MaxSize {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrBundle, MaxSize)
	}
	var which struct{ Version json.RawMessage }
	if err := json.Unmarshal(file, &which); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	if string(which.Version) != strconv.Itoa(version) {
		return nil, fmt.Errorf("%w of version %d: it says %.20q", ErrBundle, version, which.Version)
	}
	b := new(Bundle)
	d := json.NewDecoder(bytes.NewReader(file))
	d.DisallowUnknownFields()
	if err := d.Decode(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	if _, err := fairness.ParseTicket(string(b.Ticket)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	if again, err := b.Marshal(); err != nil || !bytes.Equal(again, file) {
		return nil, fmt.Errorf("%w: not in the form it would be written", ErrBundle)
	}
	return b, nil
}

// Marshal returns the file. It fails with [ErrBundle] on what no file can hold.
func (b *Bundle) Marshal() ([]byte, error) {
	var file bytes.Buffer
	e := json.NewEncoder(&file)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBundle, err)
	}
	if file.Len() > MaxSize {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrBundle, MaxSize)
	}
	return file.Bytes(), nil
}

// Text is UTF-8, written like JSON.stringify of ECMAScript does.
type Text string

// MarshalJSON implements [json.Marshaler].
//
// https://tc39.es/ecma262/#sec-quotejsonstring
func (t Text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(string(t)) {
		return nil, fmt.Errorf("%.20q is not UTF-8", string(t))
	}
	quoted := append(make([]byte, 0, len(t)+2), '"')
	for i := range len(t) {
		c := t[i]
		short, isShort := escapes[c]
		switch {
		case isShort:
			quoted = append(quoted, '\\', short)
		case c < ' ':
			quoted = fmt.Appendf(quoted, `\u%04x`, c)
		default:
			quoted = append(quoted, c)
		}
	}
	return append(quoted, '"'), nil
}

var escapes = map[byte]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r', '"': '"', '\\': '\\'}

// Bytes are written as the text that they are. Those that are none, as a
// server may send them, are an object with the one member "base64".
type Bytes []byte

// MarshalJSON implements [json.Marshaler].
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return Text(b).MarshalJSON()
	}
	return []byte(`{"base64":"` + base64.StdEncoding.EncodeToString(b) + `"}`), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *Bytes) UnmarshalJSON(value []byte) error {
	var text string
	if value[0] != '{' {
		err := json.Unmarshal(value, &text)
		*b = Bytes(text)
		return err
	}
	var object struct {
		Base64 []byte `json:"base64"`
	}
	err := json.Unmarshal(value, &object)
	*b = object.Base64
	return err
}

// Number is an integer from 0 to 2^63-1, written as a text in decimal: not
// every JSON reader holds such a number exactly.
type Number uint64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if n >= 1<<63 {
		return nil, fmt.Errorf("number %d is not below 2^63", uint64(n))
	}
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(value []byte) error {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return err
	}
	read, err := strconv.ParseUint(text, 10, 63)
	*n = Number(read)
	return err
}

// List is written as an empty list when it is nil.
type List[T any] []T

// MarshalJSON implements [json.Marshaler].
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	var list bytes.Buffer
	e := json.NewEncoder(&list)
	e.SetEscapeHTML(false) // which an encoder around this one does not see to
	err := e.Encode([]T(l))
	return list.Bytes(), err
}

// Hashes are written in base64.
type Hashes = List[audit.Hash]
