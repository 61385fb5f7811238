package rehearse

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/room"
)

// MaxWork is the maximum number of bits of work in a copy: this server does the work of the whole crowd, at about a
// millisecond for a join.
const MaxWork = 12

// Errors of [desk.vouch].
var (
	errNothing = errors.New("there are no more accounts or codes")
	errUsed    = errors.New("the account or code was used for another place")
)

// desk vouches for synthetic visitors in place of the issuers of a room, and does their work. Its keys and records are
// in memory alone.
type desk struct {
	signs  ed25519.PrivateKey
	blinds *rsa.PrivateKey // nil: no method is blind

	mu   sync.Mutex
	used map[string]bool // methods and accounts that it has signed for blindly
}

// newDesk returns a desk that vouches for the methods of a copy: they get its keys, and at most [MaxWork]. The copy
// names no pages of issuers, because what they sign is not good there.
func newDesk(c *room.Config) (*desk, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	d := &desk{signs: private, used: map[string]bool{}}
	c.Methods, c.Issuers = slices.Clone(c.Methods), nil
	for i := range c.Methods {
		switch m := &c.Methods[i]; m.Kind {
		case credential.Work:
			m.Bits = min(m.Bits, MaxWork)
		case credential.Signed:
			m.Key = hex.EncodeToString(public)
		case credential.Blind:
			if d.blinds == nil {
				if d.blinds, err = rsa.GenerateKey(rand.Reader, issuer.ModulusBits); err != nil {
					return nil, fmt.Errorf("make key: %w", err)
				}
			}
			m.Key = hex.EncodeToString(d.blinds.N.Bytes())
		}
	}
	return d, nil
}

// vouch returns the credential of an account for a ticket. The accounts of a method are numbered from 0; a method with
// a limit has as many. Errors: [errNothing], and [errUsed] for an account that a blind method has signed for.
func (d *desk) vouch(m *credential.Method, s credential.Subject, account int) (c credential.Credential, err error) {
	if m.Limit > 0 && account >= int(m.Limit) {
		return c, errNothing
	}
	c.Method = m.Name
	name := fmt.Sprintf("%s %d", m.Name, account)
	if m.Kind == credential.Signed {
		nullifier := sha256.Sum256([]byte(name))
		c.Nullifier = nullifier[:]
	}
	message := s.AppendMessage(nil, m.Name, c.Nullifier)
	switch m.Kind {
	case credential.Work:
		c.Evidence = work(append(message, s.Round...), int(m.Bits))
	case credential.Signed:
		c.Evidence = ed25519.Sign(d.signs, message)
	case credential.Blind:
		if d.isUsed(name) {
			return c, errUsed
		}
		c.Evidence, err = signBlindly(d.blinds, message)
	}
	return c, err
}

// isUsed reports whether an account was used before, and marks it as used.
func (d *desk) isUsed(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.used[name]
	d.used[name] = true
	return was
}

// work finds a nonce with which the message's hash begins with that many zero bits.
func work(message []byte, bits int) []byte {
	n := len(message)
	for nonce := uint64(0); ; nonce++ {
		message = binary.BigEndian.AppendUint64(message[:n], nonce)
		if credential.ZeroBits(message) >= bits {
			return message[n:]
		}
	}
}

// signBlindly plays both the visitor, who blinds a message and unblinds the signature, and the issuer, who signs.
func signBlindly(key *rsa.PrivateKey, message []byte) ([]byte, error) {
	visitor, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &key.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("blind: %w", err)
	}
	blinded, state, err := visitor.Blind(rand.Reader, message)
	if err != nil {
		return nil, fmt.Errorf("blind: %w", err)
	}
	signed, err := blindrsa.NewSigner(key).BlindSign(blinded)
	if err != nil {
		return nil, fmt.Errorf("sign blindly: %w", err)
	}
	return visitor.Finalize(state, signed)
}
