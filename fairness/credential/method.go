package credential

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Kind is the way in which a method's credentials are verified.
type Kind string

// The kinds of methods, and their bounds.
const (
	Work   Kind = "work"
	Signed Kind = "signed"
	Blind  Kind = "blind"

	MaxName = 32 // characters of a name
	MaxBits = 40 // of work
)

// Tries a second at work: of the page on an old phone and on a laptop, and of a program on a graphics card.
const (
	PhoneRate  = 250_000
	LaptopRate = 2_000_000
	CardRate   = 10_000_000_000
)

// Method is a way to show something about a ticket's holder.
type Method struct {
	Name  string `json:"name"` // 1 to [MaxName] of a-z, 0-9 and '-'
	Kind  Kind   `json:"kind"`
	Bits  uint8  `json:"bits,omitempty"`  // Work: zero bits, 1 to [MaxBits]
	Key   string `json:"key,omitempty"`   // Signed: Ed25519 key, 32 bytes; Blind: RSA modulus, 256 to 512 bytes; lower-case hex
	Limit uint32 `json:"limit,omitempty"` // Signed, Blind: how many credentials the room takes; 0: no bound
}

// ParseMethod reads a method as [Method.AppendText] writes it, or returns [ErrMethod]. Bounds and key
// are checked by [NewVerifier].
func ParseMethod(text string) (m Method, err error) {
	switch f := strings.Split(text, " "); {
	case len(f) == 3 && Kind(f[1]) == Work:
		n, _ := strconv.ParseUint(f[2], 10, 8)
		m = Method{Name: f[0], Kind: Work, Bits: uint8(n)}
	case len(f) == 4 && (Kind(f[1]) == Signed || Kind(f[1]) == Blind):
		n, _ := strconv.ParseUint(f[3], 10, 32)
		m = Method{Name: f[0], Kind: Kind(f[1]), Key: f[2], Limit: uint32(n)}
	}
	if !isName(m.Name) || string(m.AppendText(nil)) != text {
		return Method{}, fmt.Errorf("%w: %.80q, want NAME work BITS or NAME signed|blind KEY LIMIT", ErrMethod, text)
	}
	return m, nil
}

// AppendText appends the method as a policy has it after the word "method".
func (m Method) AppendText(dst []byte) []byte {
	dst = append(append(append(append(dst, m.Name...), ' '), m.Kind...), ' ')
	if m.Kind == Work {
		return strconv.AppendUint(dst, uint64(m.Bits), 10)
	}
	return strconv.AppendUint(append(append(dst, m.Key...), ' '), uint64(m.Limit), 10)
}

// NewVerifier returns the verifier of a method, or [ErrMethod] or [ErrKey] if no policy may have it.
// With a method of kind Signed it takes 0.7 MB from its first verification on.
func NewVerifier(m Method) (*Verifier, error) {
	v := &Verifier{name: m.Name}
	key, err := hex.DecodeString(m.Key)
	switch {
	case !isName(m.Name):
		err = fmt.Errorf("%w: name %.40q, want 1 to %d of a-z, 0-9 and -", ErrMethod, m.Name, MaxName)
	case err != nil || m.Key != hex.EncodeToString(key):
		err = fmt.Errorf("%w: want lower-case hex", ErrKey)
	case m.Kind == Signed && m.Bits == 0:
		v.evidence, v.nullifier = ed25519.SignatureSize, NullifierSize
		v.scheme, err = newSigned(key)
	case m.Kind == Blind && m.Bits == 0:
		v.evidence = len(key)
		v.scheme, err = newBlind(key)
	case m.Kind == Work && m.Key == "" && m.Limit == 0 && 1 <= m.Bits && m.Bits <= MaxBits:
		v.scheme, v.evidence = work(m.Bits), nonceSize
	default:
		err = fmt.Errorf("%w: want kind work with 1 to %d bits, signed or blind", ErrMethod, MaxBits)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Problem returns the first field, as in JSON, for which [NewVerifier] refuses the method, and what that must be;
// empty: none.
func (m Method) Problem() (field, detail string) {
	_, err := NewVerifier(m)
	switch isWork := m.Kind == Work; {
	case !isName(m.Name):
		return "name", fmt.Sprintf("must be 1 to %d of a-z, 0-9 and '-'", MaxName)
	case !isWork && m.Kind != Signed && m.Kind != Blind:
		return "kind", "must be work, signed or blind"
	case isWork && m.Key != "":
		return "key", "must be missing: work has no issuer"
	case isWork && m.Limit != 0:
		return "limit", "must be 0: work has no issuer"
	case isWork && err != nil:
		return "bits", fmt.Sprintf("must be between 1 and %d", MaxBits)
	case m.Bits != 0 && !isWork:
		return "bits", "must be 0: bits are for work"
	case err != nil:
		return "key", fmt.Sprintf("is %v", err)
	}
	return "", ""
}

func isName(s string) bool {
	return s != "" && len(s) <= MaxName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
