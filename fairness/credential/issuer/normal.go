package issuer

import (
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// normal returns what different ways of typing a value have in common. Of an address that is
// [NormalAddress]; of other values, it ignores case, accents, white space and punctuation, and takes the
// letters O, I and L for the digits 0 and 1.
func normal(text string) string {
	if address, ok := NormalAddress(text); ok {
		return address
	}
	return strings.Map(func(r rune) rune {
		switch r = unicode.ToUpper(r); {
		case r == 'O':
			return '0'
		case r == 'I' || r == 'L':
			return '1'
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return r
		}
		return -1
	}, norm.NFKD.String(text))
}

// NormalAddress returns one spelling of the addresses of one mailbox: in lower case, the domain in
// Punycode, without what follows a "+" and, at the one large provider that ignores them, without dots.
func NormalAddress(text string) (address string, ok bool) {
	a, err := mail.ParseAddress(strings.TrimSpace(text))
	if err != nil || a.Name != "" || len(a.Address) > 254 {
		return "", false
	}
	at := strings.LastIndexByte(a.Address, '@')
	box, _, _ := strings.Cut(strings.ToLower(a.Address[:at]), "+")
	domain, err := idna.Lookup.ToASCII(a.Address[at+1:])
	if domain == "googlemail.com" {
		domain = "gmail.com"
	}
	if domain == "gmail.com" {
		box = strings.ReplaceAll(box, ".", "")
	}
	isPlain := box != "" && !strings.ContainsFunc(box, func(r rune) bool { // not one that must be quoted
		return !unicode.IsGraphic(r) || strings.ContainsRune(` "(),:;<>@[\]`, r)
	})
	return box + "@" + domain, err == nil && isPlain && strings.Contains(domain, ".")
}
