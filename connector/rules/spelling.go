package rules

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// spellingsOf returns the spellings under which origins may look up a decoded path: the path as it
// is, with compatible characters normalized, and with accents removed; and the same for the path
// decoded once more, if that changes it. It returns false if the path is malformed after the second
// decoding.
func spellingsOf(b []byte) ([][]byte, bool) {
	list := folded(nil, b)
	if !isTwice(b) {
		return list, true
	}
	again, ok := decodeAgain(b)
	return folded(list, again), ok
}

// folded appends a path unchanged, in NFKC and without accents.
func folded(list [][]byte, b []byte) [][]byte {
	list = append(list, b)
	if isAllASCII(b) {
		return list
	}
	c, p := compatible(b), plainLetters(b)
	if !bytes.Equal(c, b) {
		list = append(list, c)
	}
	if !bytes.Equal(p, b) && !bytes.Equal(p, c) {
		list = append(list, p)
	}
	return list
}

func isAllASCII(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c >= utf8.RuneSelf })
}

// compatible returns a path in the normalization form NFKC, which unifies full-width letters,
// ligatures and composed letters.
func compatible(b []byte) []byte { return marked(norm.NFKC.Bytes(b)) }

// dotless i becomes i in programs that convert to upper case and back.
const dotless = 'ı'

// plainLetters returns a path in NFKD without accents, because some programs look up pages by title
// that way.
func plainLetters(b []byte) []byte {
	return marked(bytes.Map(func(r rune) rune {
		switch {
		case 0x0300 <= r && r <= 0x036f: // combining diacritical marks
			return -1
		case r == dotless:
			return 'i'
		}
		return r
	}, norm.NFKD.Bytes(b)))
}

// marked returns a normalized path in lower case. Backslashes that normalization produced are
// marked; slashes that it produced count as slashes.
func marked(b []byte) []byte {
	return []byte(lower(strings.ReplaceAll(string(b), `\`, string(rune(backslash)))))
}

// isTwice reports whether a decoded path still has a percent-escape.
func isTwice(b []byte) bool {
	for i := range b {
		if isEscape(b, i) {
			return true
		}
	}
	return false
}

func isEscape(b []byte, i int) bool {
	return b[i] == '%' && i+2 < len(b) && isHex(b[i+1]) && isHex(b[i+2])
}

// decodeAgain decodes the percent-escapes left in a decoded path, as a server does behind a proxy
// that has already decoded once. Invalid escapes stay.
func decodeAgain(b []byte) ([]byte, bool) {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if !isEscape(b, i) {
			out = append(out, b[i])
			continue
		}
		c := unhex(b[i+1])<<4 | unhex(b[i+2])
		i += 2
		switch {
		case c < ' ' || c == 0x7f:
			return nil, false
		case c == '/':
			c = encodedSlash
		case c == '\\':
			c = backslash
		}
		out = append(out, c)
	}
	return []byte(lower(string(out))), utf8.Valid(out)
}
