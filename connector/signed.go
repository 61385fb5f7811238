package connector

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Errors of signed rules.
var (
	// ErrSiteKey is returned when the site key is not a verifier key, or the URL
	// is not that of a site's rules.
	ErrSiteKey = errors.New("the site key must be a verifier key (NAME+HASH+BASE64, as the console shows it), " +
		"for a URL such as https://SERVER/v1/sites/NAME/rules")
	// ErrUnsigned is returned when rules are not signed by the site key.
	ErrUnsigned = errors.New("the rules are not signed by the site key")
	// ErrOtherSite is returned when signed rules belong to another site.
	ErrOtherSite = errors.New("the rules are signed for another site")
	// ErrOlder is returned when signed rules are older than rules already seen, or
	// have the same serial and another text.
	ErrOlder = errors.New("the rules are signed, but newer ones were seen")
	// ErrNeedsKey is returned when rules are signed, and there is no site key.
	ErrNeedsKey = errors.New("the rules are signed: give the site key, as the console shows it")
)

// signedLine is the first line of signed rules.
const signedLine = "proofline-rules/v1"

// maxNote is the maximum size of signed rules in bytes, as note.Open limits it.
const maxNote = 1_000_000

var (
	sitePath   = regexp.MustCompile(`^/v1/sites/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/rules$`)
	serialForm = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
)

// siteOf returns the site's name in the URL of its rules.
func siteOf(address string) (name string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	m := sitePath.FindStringSubmatch(u.EscapedPath())
	if m == nil {
		return "", false
	}
	return m[1], true
}

// rulesVerifier verifies the signed rules of one site, and refuses older ones.
type rulesVerifier struct {
	key    note.Verifier
	name   string
	serial uint64 // largest serial seen
	text   string // of the rules with that serial
}

// newRulesVerifier returns a verifier for the rules at a URL. Error: ErrSiteKey.
func newRulesVerifier(key, address string) (*rulesVerifier, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSiteKey, err)
	}
	name, ok := siteOf(address)
	if !ok {
		return nil, ErrSiteKey
	}
	return &rulesVerifier{key: v, name: name}, nil
}

// open returns the rules document and its serial. Errors: ErrUnsigned,
// ErrOtherSite, ErrOlder.
func (s *rulesVerifier) open(text []byte) (document string, serial uint64, err error) {
	if len(text) > maxNote {
		return "", 0, fmt.Errorf("%w: they have more than %d bytes", ErrUnsigned, maxNote)
	}
	n, err := note.Open(text, note.VerifierList(s.key))
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) != 4 || lines[0] != signedLine || !serialForm.MatchString(lines[2]) {
		return "", 0, fmt.Errorf("%w: the signed text is not a rules document", ErrUnsigned)
	}
	if lines[1] != s.name {
		return "", 0, fmt.Errorf("%w: %q, not %q", ErrOtherSite, lines[1], s.name)
	}
	serial, err = strconv.ParseUint(lines[2], 10, 63)
	if err != nil {
		return "", 0, fmt.Errorf("%w: serial %s", ErrUnsigned, lines[2])
	}
	if serial < s.serial {
		return "", 0, fmt.Errorf("%w: serial %d after %d", ErrOlder, serial, s.serial)
	}
	if serial == s.serial && n.Text != s.text {
		return "", 0, fmt.Errorf("%w: serial %d twice", ErrOlder, serial)
	}
	s.serial, s.text = serial, n.Text
	return lines[3], serial, nil
}
