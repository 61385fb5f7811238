package setting

import (
	"net/url"
	"regexp"
	"strings"
)

const wantTarget = "must be a URL of https, or of http on localhost or 127.0.0.1, with a plain host name in " +
	"lower case, without user, fragment or dot segments, at most 2000 characters"

// hostForm matches the hosts that a Content-Security-Policy may contain: a name or an IPv4 address, with or
// without a port. International names are written in Punycode.
var hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$`)

// IsHost reports whether a text is a host as hostForm describes it.
func IsHost(text string) bool { return hostForm.MatchString(text) }

// loopback matches the hosts that browsers treat as secure without TLS.
var loopback = regexp.MustCompile(`^(localhost|127\.[0-9]+\.[0-9]+\.[0-9]+)$`)

// isTarget reports whether visitors may be sent to a URL.
func isTarget(text string) bool {
	_, ok := ParseTarget(text)
	return ok
}

// ParseTarget parses a URL that visitors may be sent to.
func ParseTarget(text string) (*url.URL, bool) {
	u, err := url.Parse(text)
	if err != nil || len(text) > MaxTarget || strings.ContainsAny(text, "#\\") || u.User != nil ||
		!IsHost(u.Host) {
		return nil, false
	}
	safe := u.Scheme == "https" || u.Scheme == "http" && loopback.MatchString(u.Hostname())
	return u, safe && isPlainPath(u)
}

// isPlainPath reports whether all programs read the same folders from a path: it has no dot segments and no
// encoded separators.
func isPlainPath(u *url.URL) bool {
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	escaped := strings.ToLower(u.EscapedPath())
	return !strings.Contains(escaped, "%2f") && !strings.Contains(escaped, "%5c")
}
