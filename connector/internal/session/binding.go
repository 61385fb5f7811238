package session

import (
	"crypto/sha256"
	"net/netip"

	"github.com/proofline/proofline/connector/rules"
)

// bindOf returns the network or browser family that a client's sessions are tied to.
func bindOf(to rules.Bind, client netip.Addr, agent string) [8]byte {
	switch to {
	case rules.BindNetwork:
		return NetworkOf(client)
	case rules.BindBrowser:
		return FamilyOf(agent)
	default:
		return [8]byte{}
	}
}

// NetworkOf returns an identifier of a client's network (/24 or /48); never zero.
func NetworkOf(a netip.Addr) (name [8]byte) {
	a = a.Unmap()
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.WithZone("").Prefix(bits)
	text, _ := p.Addr().MarshalBinary()
	sum := sha256.Sum256(append([]byte("proofline network\n"), text...))
	copy(name[:], sum[:])
	name[0] |= 1
	return name
}

// FamilyOf returns an identifier of a browser family: a hash of the User-Agent
// without version numbers, which change with updates. It is never zero.
func FamilyOf(agent string) (name [8]byte) {
	b := make([]byte, 0, 256)
	b = append(b, "proofline browser\n"...)
	for i := range len(agent) {
		if c := agent[i]; ('0' > c || c > '9') && c != '.' && c != '_' {
			b = append(b, c)
		}
	}
	sum := sha256.Sum256(b)
	copy(name[:], sum[:])
	name[0] |= 1
	return name
}
