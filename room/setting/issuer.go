package setting

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/proofline/proofline/fairness"
)

// In the configuration of a new room these stand for keys of the server's own issuer. Each of them chooses what
// visitors show.
const (
	OwnKey        = "own"         // a code, or what a member knows
	OwnPuzzleKey  = "own-puzzle"  // a solved puzzle
	OwnCaptchaKey = "own-captcha" // a solved check of the server's CAPTCHA service
	OwnMailKey    = "own-mail"    // a code that the server sent to an address
	OwnOIDCKey    = "own-oidc"    // a sign-in at the server's OpenID Connect provider
)

// OwnKeys are the keys of the server's own issuer.
var OwnKeys = []string{OwnKey, OwnPuzzleKey, OwnCaptchaKey, OwnMailKey, OwnOIDCKey}

// OwnKeyLabel says in the console what visitors show for one of [OwnKeys].
func OwnKeyLabel(key string) string {
	return "This server: " + map[string]string{
		OwnKey:        "codes, or a list of members",
		OwnPuzzleKey:  "a small puzzle",
		OwnCaptchaKey: "its CAPTCHA service",
		OwnMailKey:    "a code that it mails to an address",
		OwnOIDCKey:    "an account at its sign-in provider",
	}[key] + " (" + key + ")"
}

// IsOwnKey reports whether a key is of the server's own issuer.
func IsOwnKey(key string) bool { return slices.Contains(OwnKeys, key) }

// IsSignedOnly reports whether only signed methods can have a key of the server's own issuer: no account is behind what
// visitors show, for which an issuer could sign blindly once.
func IsSignedOnly(key string) bool { return key == OwnPuzzleKey || key == OwnCaptchaKey }

// maxIssuerName is the maximum length of an issuer's name in characters.
const maxIssuerName = 80

// Issuer is where visitors are confirmed for a method.
type Issuer struct {
	Method string
	URL    *url.URL // of the page to which the room's page sends a form
	Name   string   // for visitors
	Proof  Proof    // what visitors need there; empty: not known
}

// Proof is what visitors need at an issuer.
type Proof string

// What visitors need.
const (
	ProofCode    Proof = "code"    // that they were given
	ProofMember  Proof = "member"  // what a member knows, such as a number
	ProofAccount Proof = "account" // a sign-in
	ProofMail    Proof = "mail"    // a confirmation by mail
	ProofPuzzle  Proof = "puzzle"
	ProofCaptcha Proof = "captcha"
)

// isProof reports whether a proof is known, or none.
func isProof(p Proof) bool {
	return slices.Contains([]Proof{"", ProofCode, ProofMember, ProofAccount, ProofMail, ProofPuzzle, ProofCaptcha}, p)
}

const wantIssuer = "must be a method, the URL of the issuer's page and its name, such as " +
	"\"club https://club.example.org/derby Example Fan Club\"; the URL is of https, or of http in a private network"

// ParseIssuer parses METHOD URL NAME. Without a name, it is the URL's host. The URL may end with "#" and a [Proof].
func ParseIssuer(text string) (i Issuer, ok bool) {
	method, rest, _ := strings.Cut(text, " ")
	address, name, _ := strings.Cut(rest, " ")
	address, proof, hasProof := strings.Cut(address, "#")
	u, err := url.Parse(address)
	if hasProof != (proof != "") || !isProof(Proof(proof)) {
		return i, false
	}
	if err != nil || len(address) > MaxTarget || strings.ContainsAny(address, `#\`) || u.User != nil ||
		u.RawQuery != "" || !IsHost(u.Host) || !isPlainPath(u) || !isMethod(method) {
		return i, false
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isPrivate(u.Hostname())) {
		return i, false
	}
	if name == "" {
		name = u.Host
	}
	isName := utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxIssuerName &&
		name == strings.TrimSpace(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	return Issuer{method, u, name, Proof(proof)}, isName
}

func isIssuer(text string) bool {
	_, ok := ParseIssuer(text)
	return ok
}

// isPrivate reports whether a host is of this machine or of a private network.
func isPrivate(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && (a.IsLoopback() || a.IsPrivate()) || err != nil && !strings.Contains(host, ".")
}

var issuers = Setting{
	Name: "issuers", Change: Free,
	Kind: List{Each: Text{Check: isIssuer, Wants: wantIssuer}, Max: fairness.MaxMethods,
		Wants: "must be a list of texts, each for one method"},
	Label: "Pages of issuers",
	Help: "list of texts such as `club https://club.example.org/derby Example Fan Club`: for a method, the page on which " +
		"its issuer confirms visitors, and the issuer's name; the room's page sends visitors there. The page's address may end with what " +
		"visitors need there, which the room's page then says: `#code`, `#member`, `#account`, `#mail`, `#puzzle` or `#captcha`",
	Default: "for methods with a key of the server's own issuer, such as `own`, the pages of this server",
	Form: Form{Group: "lanes", Placeholder: "club https://club.example.org/derby Example Fan Club", Empty: "none",
		Hint: "One per line: a method, the address of the page on which its issuer confirms visitors, and the issuer's " +
			"name. It is not in the policy: a wrong address can confirm nobody, because the policy has the key. The address may " +
			"end with what visitors need there: #code, #member, #account, #mail, #puzzle or #captcha."},
	Row: Row{Label: "issuer"},
}
