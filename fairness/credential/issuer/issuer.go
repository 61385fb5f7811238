// Package issuer signs credentials for accounts that it has seen proof of, and keeps count.
//
// An issuer is another organization than the one that runs the room, or the same with a key of its
// own. It knows rooms by the hash of their first entry alone and has no access to them. One secret,
// from which every key but those for blind signatures is derived, and a directory ([Store]) are all of its state.
//
// An [Offer] is what an issuer vouches for in one room. Its accounts are texts, such as an address or
// a member's number. Only keyed hashes of them leave this package:
//
//	nullifier HMAC-SHA-256(room's nullifier key, method || 0 || account)   in signed credentials
//	record    HMAC-SHA-256(offer's account key, nullifier)[0:16]           in the store; for blind offers, of the account
//
// Those who know the secret can find out which of the accounts that they can think of have a place.
package issuer

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issued"
)

// Errors of [Issuer.Issue].
var (
	ErrUsed    = errors.New("a credential was issued for another place") // the account, or the code, had its one
	ErrVoid    = errors.New("the account was voided")                    // before it had a credential
	ErrLimit   = errors.New("all credentials were issued")               // the offer's limit is reached
	ErrLane    = errors.New("the offer is not for this lane")
	ErrBlinded = errors.New("not a blinded message") // a value that the offer's key cannot sign
)

// SecretSize is the length of an issuer's secret in bytes.
const SecretSize = 32

// ModulusBits is the size of new RSA keys.
const ModulusBits = 2048

// Offer is what an issuer vouches for in one room.
type Offer struct {
	Name   string            // unique at the issuer, 1 to 32 of a-z, 0-9 and '-'
	Method string            // name of the method in the room's policy
	Room   [sha256.Size]byte // SHA-256 of the room entry
	Lanes  []string          // lanes that a signed credential may name, at least one
	Limit  uint32            // maximum number of accounts; 0: no limit
	Key    *rsa.PrivateKey   // signs blindly, for this offer alone; nil: credentials are signed
	Once   bool              // an account gets a credential for one place; blind signatures always
	// Purpose is what the key that signs is for; empty: accounts. What is signed for one purpose is good for no other.
	Purpose string
}

// Request is what a visitor asks for. A blind request names neither lane nor ticket.
type Request struct {
	Lane    string
	Ticket  [16]byte
	Blinded []byte // the blinded message; as long as the offer's modulus
}

// Issued is what an offer gives for a request.
type Issued struct {
	Nullifier []byte // none for a blind request
	Evidence  []byte // the signature; for a blind request the blind one, which the visitor finalizes
	Again     bool   // the account had a credential before
}

// Issuer signs credentials. It is safe for concurrent use.
type Issuer struct {
	secret []byte
	key    ed25519.PrivateKey // signs for accounts, and counts
	store  *Store
}

// New returns the issuer with a secret of [SecretSize] random bytes.
func New(secret []byte, store *Store) (*Issuer, error) {
	if len(secret) != SecretSize {
		return nil, fmt.Errorf("issuer: the secret has %d bytes, want %d", len(secret), SecretSize)
	}
	i := &Issuer{secret: slices.Clone(secret), store: store}
	i.key = ed25519.NewKeyFromSeed(i.Derive("ed25519"))
	return i, nil
}

// Derive returns 32 bytes that follow from the secret and a purpose.
func (i *Issuer) Derive(purpose ...string) []byte {
	b, err := hkdf.Key(sha256.New, i.secret, nil, "proofline/issuer/v1\x00"+strings.Join(purpose, "\x00"), 32)
	if err != nil {
		panic(err) // only for lengths that SHA-256 cannot provide
	}
	return b
}

// Method returns the method that a policy names for an offer.
func (i *Issuer) Method(o *Offer) credential.Method {
	m := credential.Method{Name: o.Method, Kind: credential.Signed, Limit: o.Limit,
		Key: hex.EncodeToString(i.keyOf(o).Public().(ed25519.PublicKey))}
	if o.Key != nil {
		m.Kind, m.Key = credential.Blind, hex.EncodeToString(o.Key.N.Bytes())
	}
	return m
}

// keyOf returns the key that signs credentials of an offer.
func (i *Issuer) keyOf(o *Offer) ed25519.PrivateKey {
	if o.Purpose == "" {
		return i.key
	}
	return ed25519.NewKeyFromSeed(i.Derive("ed25519", o.Purpose))
}

// Issue signs a credential for an account. When it returns, the store has recorded that. The same request again has
// the same result. It returns [ErrUsed], [ErrVoid], [ErrLimit], [ErrLane], [ErrBlinded],
// [ErrForgotten], or another error of the store.
func (i *Issuer) Issue(o *Offer, account string, r Request) (Issued, error) {
	if o.Key != nil {
		return i.issueBlind(o, account, r.Blinded)
	}
	if !slices.Contains(o.Lanes, r.Lane) {
		return Issued{}, ErrLane
	}
	nullifier := keyed(i.nullifierKey(o), o.Method+"\x00"+account)
	again, err := i.record(o, string(nullifier), asked(r), o.Once)
	if err != nil {
		return Issued{}, err
	}
	subject := credential.Subject{Room: o.Room, Lane: r.Lane, Ticket: r.Ticket}
	signature := ed25519.Sign(i.keyOf(o), subject.AppendMessage(nil, o.Method, nullifier))
	return Issued{nullifier, signature, again}, nil
}

func (i *Issuer) issueBlind(o *Offer, account string, blinded []byte) (Issued, error) {
	signature, err := blindrsa.NewSigner(o.Key).BlindSign(blinded)
	if err != nil {
		return Issued{}, fmt.Errorf("%w: %w", ErrBlinded, err)
	}
	again, err := i.record(o, account, blinded, true)
	if err != nil {
		return Issued{}, err
	}
	return Issued{nil, signature, again}, nil
}

// record stores that an account, or its nullifier, asked for something.
func (i *Issuer) record(o *Offer, account string, asked []byte, once bool) (again bool, err error) {
	id, request := i.hashes(o, account, asked)
	return i.store.take(o, id, request, once)
}

// hashes returns what the store keeps of an account, or its nullifier, and of what it asked for.
func (i *Issuer) hashes(o *Offer, account string, asked []byte) (id, request [hashSize]byte) {
	key := keyed(i.accountKey(o), account)
	return [hashSize]byte(key), [hashSize]byte(keyed(key, string(asked)))
}

func (i *Issuer) accountKey(o *Offer) []byte {
	return i.Derive("account", o.Name, hex.EncodeToString(o.Room[:]))
}

func (i *Issuer) nullifierKey(o *Offer) []byte {
	return i.Derive("nullifier", hex.EncodeToString(o.Room[:]))
}

// asked returns what a request for a signed credential asks for.
func asked(r Request) []byte { return append([]byte(r.Lane+"\x00"), r.Ticket[:]...) }

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text))
	return mac.Sum(nil)
}

// VerifierKey returns the key that verifies counts signed under a name, in signed-note form.
func (i *Issuer) VerifierKey(name string) (string, error) {
	return issued.VerifierKey(name, i.key.Public().(ed25519.PublicKey))
}

// Count returns how many accounts have a credential of each offer whose records are kept, signed under a name as
// package issued reads it.
func (i *Issuer) Count(name string, offers []*Offer, millis int64) ([]byte, error) {
	c := issued.Count{By: name, Millis: millis}
	for _, o := range offers {
		n, err := i.store.count(o)
		if errors.Is(err, ErrForgotten) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.Offers = append(c.Offers, issued.Offer{Name: o.Name, Method: o.Method, Room: o.Room, Accounts: uint64(n),
			Limit: o.Limit})
	}
	return c.Sign(i.key)
}
