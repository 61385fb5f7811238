package rules

import (
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Maximum sizes, in bytes, of any path and of paths that can be read in rare ways.
const (
	maxTarget = 8192
	maxRare   = 2048
)

// maxReadings is the maximum number of readings of a path. Only attackers send paths with more.
const maxReadings = 64

// Ways in which origins read paths differently.
const (
	readSeparators = 1 << iota // \ and encoded slashes are slashes
	readParameters             // the part of a segment from ; on is dropped
	readSlashes                // several slashes count as one
	readDots                   // dot segments are resolved
	readAuthority              // two slashes at the beginning are followed by a host
	readEarly                  // the part from ; on is dropped before encoded slashes are decoded
	readTrimmed                // dots and spaces at the end of a segment are dropped

	rareWays = readAuthority | readEarly | readTrimmed
)

// Bytes that mark disguised separators in a decoded path, which otherwise has no control
// characters.
const (
	encodedSlash = 0x01
	backslash    = 0x02
)

// splitTarget splits a request target into host (only in absolute form), path and query as sent;
// false if it is malformed.
func splitTarget(target string) (host, path, query string, ok bool) {
	path, query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(path, "/") || path == "*" {
		return "", path, query, true
	}
	scheme, rest, isAbsolute := strings.Cut(path, "://")
	if scheme = lower(scheme); !isAbsolute || scheme != "http" && scheme != "https" {
		return "", "", "", false
	}
	end := strings.IndexAny(rest, `/\`)
	if end < 0 {
		end = len(rest)
	}
	host, path = rest[:end], rest[end:]
	if path == "" {
		path = "/"
	}
	return host, path, query, host != ""
}

// hostName returns a host without port and trailing dot, in lower case; false if it is malformed.
func hostName(host string) (string, bool) {
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || !isPort(host[end+1:]) {
			return "", false
		}
		host = host[1:end]
	} else if i := strings.IndexByte(host, ':'); i >= 0 {
		if !isPort(host[i:]) {
			return "", false
		}
		host = host[:i]
	}
	host = lower(strings.TrimSuffix(host, "."))
	for i := range len(host) {
		c := host[i]
		if ('a' > c || c > 'z') && ('0' > c || c > '9') && c != '-' && c != '.' && c != '_' && c != ':' {
			return "", false
		}
	}
	return host, true
}

// isPort reports whether a text is empty or a colon and digits.
func isPort(s string) bool {
	return s == "" || s[0] == ':' && len(s) <= 6 && strings.Trim(s[1:], "0123456789") == ""
}

// readings returns all ways in which origins might read a path, the most thorough first, in lower
// case and without a trailing slash. It returns false for malformed paths, including those that
// climb above the root.
func readings(raw string) ([]string, bool) {
	if path, ok := plain(raw); ok {
		return []string{path}, true
	}
	b, ok := decodePath(raw)
	if !ok {
		return nil, false
	}
	spellings, ok := spellingsOf(b)
	if !ok || len(raw) > maxRare && isTwice(b) {
		return nil, false
	}
	list := make([]string, 0, 4)
	for _, b := range spellings {
		ways := waysOf(b)
		if ways&rareWays != 0 && len(raw) > maxRare || len(list)+1<<bits.OnesCount(uint(ways)) > maxReadings {
			return nil, false
		}
		if list, ok = appendReadings(list, b, ways); !ok {
			return nil, false
		}
	}
	return list, true
}

// appendReadings appends all readings of one spelling: one for every subset of ways. It returns
// false if the path climbs above the root in one of them.
func appendReadings(list []string, b []byte, ways int) ([]string, bool) {
	often, rare := ways&^rareWays, ways&rareWays
	r := reader{path: b}
	for more := 0; ; more = (more - rare) & rare { // all subsets of the rare ways
		for way := often; ; way = (way - 1) & often {
			path, ok := r.read(way | more)
			if !ok {
				return nil, false
			}
			list = append(list, path)
			if way == 0 {
				break
			}
		}
		if more == rare {
			return list, true
		}
	}
}

// plain returns the path if there is only one way to read it, which is true of most paths.
func plain(raw string) (string, bool) {
	if raw == "" || raw[0] != '/' || len(raw) > maxTarget {
		return "", false
	}
	for i := range len(raw) {
		c := raw[i]
		switch {
		case c == '/' && i+1 < len(raw) && (raw[i+1] == '/' || raw[i+1] == '.'):
			return "", false
		case c == '.' && (i+1 == len(raw) || raw[i+1] == '/'):
			return "", false
		case c <= ' ' || c >= 0x7f || 'A' <= c && c <= 'Z' || c == '%' || c == '\\' || c == ';' || c == '#':
			return "", false
		}
	}
	if len(raw) > 1 {
		raw = strings.TrimSuffix(raw, "/")
	}
	return raw, true
}

// decodePath decodes percent-escapes once, and marks disguised separators.
func decodePath(raw string) ([]byte, bool) {
	if raw == "*" {
		raw = "/*"
	}
	if raw == "" || raw[0] != '/' && raw[0] != '\\' || len(raw) > maxTarget {
		return nil, false
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c, isEncoded := raw[i], raw[i] == '%'
		if isEncoded {
			if i+2 >= len(raw) || !isHex(raw[i+1]) || !isHex(raw[i+2]) {
				return nil, false
			}
			c = unhex(raw[i+1])<<4 | unhex(raw[i+2])
			i += 2
		}
		switch {
		case c < ' ' || c == 0x7f || c == '#' && !isEncoded || c == ' ' && !isEncoded:
			return nil, false
		case c == '/' && isEncoded:
			c = encodedSlash
		case c == '\\':
			c = backslash
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b, utf8.Valid(b)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// waysOf returns the ways in which a decoded path can be read differently.
func waysOf(b []byte) (ways int) {
	if strings.ContainsAny(string(b), "\x01\x02") {
		ways |= readSeparators
	}
	if strings.Contains(string(b), ";") {
		ways |= readParameters
	}
	if ways == readSeparators|readParameters {
		ways |= readEarly
	}
	segments := segmentsOf(b, readSeparators|readParameters)
	if len(withoutAuthority(segments[1:])) < len(segments)-1 {
		ways |= readAuthority
	}
	for i, s := range segments {
		short := trimmed(s)
		if short != s {
			ways |= readTrimmed
		}
		if short == "" && i > 0 && i < len(segments)-1 {
			ways |= readSlashes
		}
		if short == "." || short == ".." {
			ways |= readDots
		}
	}
	return ways
}

// trimmed returns a segment as Windows reads it: without trailing spaces and dots, unless it is a
// dot segment.
func trimmed(segment string) string {
	if s := strings.TrimRight(segment, " "); s == "." || s == ".." {
		return s
	}
	return strings.TrimRight(segment, " .")
}

// segmentsOf splits a decoded path after its first slash.
func segmentsOf(b []byte, way int) []string {
	if way&readEarly != 0 {
		b = []byte(strings.Join(withoutParameters(strings.Split(string(b), "/")), "/"))
	}
	var text strings.Builder
	for _, c := range b {
		switch {
		case c != encodedSlash && c != backslash:
			text.WriteByte(c)
		case way&readSeparators != 0:
			text.WriteByte('/')
		case c == encodedSlash:
			text.WriteString("%2f")
		default:
			text.WriteByte('\\')
		}
	}
	list := strings.Split(text.String(), "/")
	if way&readParameters != 0 {
		list = withoutParameters(list)
	}
	if way&readTrimmed != 0 {
		for i, s := range list {
			list[i] = trimmed(s)
		}
	}
	return list
}

func withoutParameters(segments []string) []string {
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return segments
}

// withoutAuthority returns the segments without a host after two leading slashes.
func withoutAuthority(segments []string) []string {
	if len(segments) == 0 || segments[0] != "" {
		return segments
	}
	for i, s := range segments {
		if s != "" {
			return segments[i+1:]
		}
	}
	return segments
}

// reader reads a decoded path in several ways and shares their common work, because clients can
// send paths with many readings.
type reader struct {
	path  []byte
	split [readTrimmed << 1][]string // segments, by the ways that affect splitting
	kept  []string
}

// splitWays are the ways that affect how a path is split.
const splitWays = readSeparators | readParameters | readEarly | readTrimmed

func (r *reader) segments(way int) []string {
	way &= splitWays
	if r.split[way] == nil {
		r.split[way] = segmentsOf(r.path, way)
	}
	return r.split[way]
}

// read returns one reading of the path; false if it climbs above the root.
func (r *reader) read(way int) (string, bool) {
	kept, segments := r.kept[:0], r.segments(way)
	if segments[0] == "" {
		segments = segments[1:]
	}
	if way&readAuthority != 0 {
		segments = withoutAuthority(segments)
	}
	for _, s := range segments {
		switch {
		case s == "" && way&readSlashes != 0:
		case s == "." && way&readDots != 0:
		case s == ".." && way&readDots != 0:
			if len(kept) == 0 {
				return "", false
			}
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, s)
		}
	}
	r.kept = kept
	for len(kept) > 0 && kept[len(kept)-1] == "" {
		kept = kept[:len(kept)-1]
	}
	return "/" + strings.Join(kept, "/"), true
}
