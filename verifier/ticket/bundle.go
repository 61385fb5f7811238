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

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 16 << 20

// version is the only version of the file.
const version = 1

// ErrBundle is returned for a file that is not a saved proof in canonical form.
var ErrBundle = errors.New("not a saved proof")

// Bundle is a visitor's saved proof: what the visitor holds, and what the room has published about
// it. Nil members are not in the file. The secret never is.
type Bundle struct {
	Version    int          `json:"version"`
	Origin     Text         `json:"origin"`         // origin of the room
	VKey       *Text        `json:"vkey,omitempty"` // key of the log, as given to the visitor
	Ticket     Text         `json:"ticket"`         // canonical ticket
	Receipt    Bytes        `json:"receipt"`
	Shown      *Number      `json:"shown,omitempty"` // position that the visitor was shown
	Checkpoint Bytes        `json:"checkpoint"`
	Room       *Proven      `json:"room,omitempty"`
	Arrive     *Proven      `json:"arrive,omitempty"`
	Merits     List[Proven] `json:"merits"`          // merits of the ticket, as far as known
	Growth     Hashes       `json:"growth,omitzero"` // consistency proof from the receipt's tree to the checkpoint's
	Amends     List[Proven] `json:"amends"`          // amendments of the schedule, as far as known
	Freeze     *Proven      `json:"freeze,omitempty"`
	Frozen     Hashes       `json:"frozen,omitzero"` // consistency proof from the freeze's tree to the checkpoint's
	Draw       *Proven      `json:"draw,omitempty"`
	FirstPlace *Run         `json:"first_place,omitempty"` // entries from after the draw to the window's first place
	Place      *Proven      `json:"place,omitempty"`
	Earlier    List[Proven] `json:"earlier,omitzero"`    // freezes of all earlier windows, if they are to be checked
	Malformed  *Text        `json:"malformed,omitempty"` // the page's description of a malformed file
	GaveUp     bool         `json:"gave_up,omitempty"`   // whether a search stopped before the end of the log
}

// Proven is an entry with its index and inclusion proof in the checkpoint's tree.
type Proven struct {
	Index Number `json:"index"`
	Entry Bytes  `json:"entry"`
	Path  Hashes `json:"path"`
}

// Run is a gapless run of entries with the proof of its place in the checkpoint's tree.
type Run struct {
	First   Number      `json:"first"`
	Entries List[Bytes] `json:"entries"`
	Proof   Hashes      `json:"proof"`
}

// Parse reads a file. It writes the file again and compares the bytes, so that each content has
// exactly one file. Any other file returns [ErrBundle].
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
		return nil, fmt.Errorf("%w: not in canonical form", ErrBundle)
	}
	return b, nil
}

// Marshal returns the file. It fails with [ErrBundle] if the content does not fit into a file.
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

// Text is UTF-8, encoded as ECMAScript's JSON.stringify encodes it.
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

// Bytes are encoded as a string if they are UTF-8, and otherwise, as a server might send them, as
// an object with the one member "base64".
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

// Number is an integer from 0 to 2^63-1, encoded as a decimal string because some JSON readers
// cannot hold such a number exactly.
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

// List is encoded as an empty list if it is nil.
type List[T any] []T

// MarshalJSON implements [json.Marshaler].
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	var list bytes.Buffer
	e := json.NewEncoder(&list)
	e.SetEscapeHTML(false) // the outer encoder's setting does not apply here
	err := e.Encode([]T(l))
	return list.Bytes(), err
}

// Hashes are encoded in base64.
type Hashes = List[audit.Hash]
