package account

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Maximum lengths in characters.
const (
	maxName  = 100
	maxEmail = 254 // RFC 5321
)

const (
	wantEmail = "must be an e-mail address such as name@example.com, in ASCII"
	wantName  = "must be 1 to 100 characters without line breaks"
)

// emailForm matches plain e-mail addresses, without quoting, comments or address literals.
var emailForm = regexp.MustCompile("^[a-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")

// NormalEmail returns an e-mail address in its stored form, in lower case; false if it is invalid.
func NormalEmail(text string) (string, bool) {
	email := strings.ToLower(strings.TrimSpace(text))
	return email, len(email) <= maxEmail && emailForm.MatchString(email)
}

// normalName returns a display name in its stored form; false if it is invalid.
func normalName(text string) (string, bool) {
	name := norm.NFC.String(strings.TrimSpace(text))
	ok := name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxName &&
		!strings.ContainsFunc(name, isHidden)
	return name, ok
}

// isHidden reports whether a character is invisible or changes how others are displayed.
func isHidden(r rune) bool { return !unicode.IsPrint(r) }

// device summarizes a User-Agent header for a list of sessions.
func device(userAgent string) string {
	browser := firstOf(userAgent, "Browser", "Edg/ Edge", "OPR/ Opera", "Firefox/ Firefox", "Chrome/ Chrome",
		"Safari/ Safari", "curl/ curl")
	system := firstOf(userAgent, "unknown system", "Android Android", "iPhone iPhone", "iPad iPad", "Windows Windows",
		"Mac macOS", "CrOS ChromeOS", "Linux Linux")
	return browser + " on " + system
}

// firstOf returns the name that belongs to the first mark contained in text. Each pair is "mark
// name".
func firstOf(text, otherwise string, pairs ...string) string {
	for _, pair := range pairs {
		if mark, name, _ := strings.Cut(pair, " "); strings.Contains(text, mark) {
			return name
		}
	}
	return otherwise
}
