package source

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
	// ErrOlder is returned when signed rules are older than rules already seen, or have the same
	// version but a different text.
	ErrOlder = errors.New("the rules are signed, but newer ones were seen")
	// ErrNeedsKey is returned when rules are signed, but there is no site key.
	ErrNeedsKey = errors.New("the rules are signed: give the site key, as the console shows it")
)

// signedLine is the first line of signed rules.
const signedLine = "proofline-rules/v1"

// maxNote is the maximum size of signed rules in bytes, as note.Open limits it.
const maxNote = 1_000_000

var (
	sitePath    = regexp.MustCompile(`^/v1/sites/([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/rules$`)
	versionForm = regexp.MustCompile(`^[1-9][0-9]{0,18}$`)
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

// verifier verifies the signed rules of one site, and refuses older ones.
type verifier struct {
	key     note.Verifier
	name    string
	version uint64 // largest version seen
	text    string // text of the rules with that version
}

// newVerifier returns a verifier for the rules at a URL. Error: ErrSiteKey.
func newVerifier(key, address string) (*verifier, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSiteKey, err)
	}
	name, ok := siteOf(address)
	if !ok {
		return nil, ErrSiteKey
	}
	return &verifier{key: v, name: name}, nil
}

// open returns the rules document and its version. Errors: ErrUnsigned,
// ErrOtherSite, ErrOlder.
func (s *verifier) open(text []byte) (document string, version uint64, err error) {
	if len(text) > maxNote {
		return "", 0, fmt.Errorf("%w: they have more than %d bytes", ErrUnsigned, maxNote)
	}
	n, err := note.Open(text, note.VerifierList(s.key))
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", ErrUnsigned, err)
	}
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) != 4 || lines[0] != signedLine || !versionForm.MatchString(lines[2]) {
		return "", 0, fmt.Errorf("%w: the signed text is not a rules document", ErrUnsigned)
	}
	if lines[1] != s.name {
		return "", 0, fmt.Errorf("%w: %q, not %q", ErrOtherSite, lines[1], s.name)
	}
	version, err = strconv.ParseUint(lines[2], 10, 63)
	if err != nil {
		return "", 0, fmt.Errorf("%w: version %s", ErrUnsigned, lines[2])
	}
	if version < s.version {
		return "", 0, fmt.Errorf("%w: version %d after %d", ErrOlder, version, s.version)
	}
	if version == s.version && n.Text != s.text {
		return "", 0, fmt.Errorf("%w: version %d twice", ErrOlder, version)
	}
	s.version, s.text = version, n.Text
	return lines[3], version, nil
}
