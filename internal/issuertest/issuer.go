// Package issuertest makes credentials for tests, with published keys.
package issuertest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"

	"github.com/cloudflare/circl/blindsign/blindrsa"

	"github.com/proofline/proofline/fairness/credential"
)

// Issuer makes the credentials of one method. It does the work of a method of kind work.
type Issuer struct {
	Method credential.Method
	key    ed25519.PrivateKey
	rsa    *rsa.PrivateKey
}

// Signed returns an issuer whose Ed25519 key follows from the name of its method.
func Signed(name string, limit uint32) *Issuer {
	seed := sha256.Sum256([]byte("issuer " + name))
	key := ed25519.NewKeyFromSeed(seed[:])
	return &Issuer{key: key, Method: credential.Method{
		Name: name, Kind: credential.Signed, Key: hex.EncodeToString(key[ed25519.SeedSize:]), Limit: limit,
	}}
}

// Blind returns an issuer with the key testRSA2048 of RFC 9500, section 2.1.
func Blind(name string, limit uint32) *Issuer {
	key := testKey()
	return &Issuer{rsa: key, Method: credential.Method{
		Name: name, Kind: credential.Blind, Key: key.N.Text(16), Limit: limit,
	}}
}

// Work returns a worker. Work for another subject is accepted once in 2^bits times: a test that wants it refused takes
// 16 bits.
func Work(name string, bits uint8) *Issuer {
	return &Issuer{Method: credential.Method{Name: name, Kind: credential.Work, Bits: bits}}
}

// Show returns the credential of an account for a subject. Those of a method of kind signed have a nullifier for each
// account.
func (i *Issuer) Show(s credential.Subject, account int) credential.Credential {
	c := credential.Credential{Method: i.Method.Name}
	if i.Method.Kind == credential.Signed {
		n := sha256.Sum256(fmt.Append(nil, i.Method.Name, " account ", account))
		c.Nullifier = n[:]
	}
	message := s.AppendMessage(nil, c.Method, c.Nullifier)
	switch i.Method.Kind {
	case credential.Work:
		c.Evidence = search(append(message, s.Round...), int(i.Method.Bits))
	case credential.Signed:
		c.Evidence = ed25519.Sign(i.key, message)
	case credential.Blind:
		c.Evidence = i.blindly(message)
	}
	return c
}

func search(message []byte, bits int) []byte {
	tried := append(slices.Clone(message), make([]byte, 8)...)
	nonce := tried[len(message):]
	for credential.ZeroBits(tried) < bits {
		binary.BigEndian.PutUint64(nonce, binary.BigEndian.Uint64(nonce)+1)
	}
	return nonce
}

// blindly blinds, signs and unblinds. The result does not depend on chance.
func (i *Issuer) blindly(message []byte) []byte {
	client, err := blindrsa.NewClient(blindrsa.SHA384PSSZeroDeterministic, &i.rsa.PublicKey)
	if err != nil {
		panic(err)
	}
	request, state, err := client.Blind(rand.Reader, message)
	if err != nil {
		panic(err)
	}
	response, err := blindrsa.NewSigner(i.rsa).BlindSign(request)
	if err != nil {
		panic(err)
	}
	signature, err := client.Finalize(state, response)
	if err != nil {
		panic(err)
	}
	return signature
}

func testKey() *rsa.PrivateKey {
	read := func(s string) *big.Int {
		n, _ := new(big.Int).SetString(s, 16)
		return n
	}
	p := read("dd105702382f232b3681f53791e22617c7bf4e9acb81ed48daf6d6995da3eab642839aff012d2ea628b90af279fd3e6f" +
		"7c93cd80f072f01ff2443b3ee8f24ed469a79613a41bd24020f92fd11059bd1d0f301b5ba7a9d3637ca8d65c1a981541" +
		"7d8eab734b0b4f3a2c661d9a1a82f3ac734c40530669ab8e473045a58e65539d")
	q := read("ccf1e5bb90c8e9781ea75bebf10bc252e11eb023a0260f1887552a56863f4a6421e8c600bf523d6cb1b0adbdd65bfee4" +
		"a88a037e3d1a415e5bb95648da5a0ca26b54f4a63948522c3d5f89b94a72efff95134d5940ce45758f30898090895658" +
		"8eef575b3e4bc4c368cfe813ee9c252c2b02e0df91f1aa01938d38685d60ba6f")
	one := big.NewInt(1)
	phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
	return &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: new(big.Int).Mul(p, q), E: credential.Exponent},
		D: new(big.Int).ModInverse(big.NewInt(credential.Exponent), phi), Primes: []*big.Int{p, q}}
}
