package relay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/proofline/proofline/fairness/beacon"
)

// hexBytes encodes as lower-case hex digits in JSON.
type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// info is drand's JSON representation of a chain, at /info.
type info struct {
	PublicKey hexBytes `json:"public_key"`
	Period    uint32   `json:"period"`       // seconds
	Genesis   int64    `json:"genesis_time"` // seconds since the Unix epoch
	Hash      hexBytes `json:"hash"`
	GroupHash hexBytes `json:"groupHash"`
	Scheme    string   `json:"schemeID"`
	Metadata  struct {
		ID string `json:"beaconID"`
	} `json:"metadata"`
}

// round is drand's JSON representation of a round, at /public/{round}.
type round struct {
	Round      uint64   `json:"round"`
	Randomness hexBytes `json:"randomness"` // SHA-256(signature)
	Signature  hexBytes `json:"signature"`
}

// EncodeInfo returns drand's JSON for a chain.
func EncodeInfo(c beacon.Chain) []byte {
	hash := c.Hash()
	i := info{PublicKey: c.PublicKey[:], Period: c.Period, Genesis: c.Genesis, Hash: hash[:], GroupHash: c.GroupHash[:],
		Scheme: beacon.Scheme}
	i.Metadata.ID = c.ID
	return encode(i)
}

// ParseInfo reads drand's JSON for a chain. It returns [ErrChain] if the JSON does not describe a
// chain of this scheme, or has the wrong hash. The caller compares the hash with that of the
// expected chain.
func ParseInfo(data []byte) (beacon.Chain, error) {
	var i info
	if err := json.Unmarshal(data, &i); err != nil {
		return beacon.Chain{}, fmt.Errorf("%w: not drand's JSON for a chain: %w", ErrChain, err)
	}
	c := beacon.Chain{ID: i.Metadata.ID, Genesis: i.Genesis, Period: i.Period}
	switch {
	case i.Scheme != beacon.Scheme:
		return beacon.Chain{}, fmt.Errorf("%w: its scheme is %.99q, want %s", ErrChain, i.Scheme, beacon.Scheme)
	case copy(c.PublicKey[:], i.PublicKey) != len(i.PublicKey) || len(i.PublicKey) != len(c.PublicKey):
		return beacon.Chain{}, fmt.Errorf("%w: its key has %d bytes, want %d", ErrChain, len(i.PublicKey),
			len(c.PublicKey))
	case copy(c.GroupHash[:], i.GroupHash) != len(i.GroupHash) || len(i.GroupHash) != len(c.GroupHash):
		return beacon.Chain{}, fmt.Errorf("%w: its groupHash has %d bytes, want %d", ErrChain, len(i.GroupHash),
			len(c.GroupHash))
	}
	if err := c.Valid(); err != nil {
		return beacon.Chain{}, fmt.Errorf("%w: %w", ErrChain, err)
	}
	if hash := c.Hash(); i.Hash != nil && !bytes.Equal(i.Hash, hash[:]) {
		return beacon.Chain{}, fmt.Errorf("%w: it claims the hash %.32x, but has %x", ErrChain, []byte(i.Hash), hash)
	}
	return c, nil
}

// EncodeRound returns drand's JSON for a round.
func EncodeRound(n uint64, signature []byte) []byte {
	randomness := sha256.Sum256(signature)
	return encode(round{Round: n, Randomness: randomness[:], Signature: signature})
}

// ParseRound reads drand's JSON for a round. It does not verify the signature: see
// [beacon.Chain.Verify].
func ParseRound(data []byte) (n uint64, signature []byte, err error) {
	var r round
	if err := json.Unmarshal(data, &r); err != nil {
		return 0, nil, fmt.Errorf("not drand's JSON for a round: %w", err)
	}
	if r.Round < 1 || len(r.Signature) != beacon.SignatureSize {
		return 0, nil, errors.New("not drand's JSON for a round: want a number from 1 and a signature of 48 bytes")
	}
	return r.Round, r.Signature, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers, hex and strings always encode
	}
	return append(b, '\n')
}
