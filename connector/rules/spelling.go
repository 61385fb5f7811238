package rules

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// spellingsOf returns a decoded path as origins may spell it before they look it
// up: as it is, with compatible characters and then with accented letters as
// plain ones; and the same of the path decoded again, if that changes it. It
// reports false if the path is malformed once it is decoded again.
func spellingsOf(b []byte) ([][]byte, bool) {
	list := folded(nil, b)
	if !isTwice(b) {
		return list, true
	}
	again, ok := decodeAgain(b)
	return folded(list, again), ok
}

// folded appends a path with its letters as they are, compatible and plain.
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

// compatible returns a path in the normalization form NFKC, which has one
// spelling for a letter of full width, a ligature and a composed letter.
func compatible(b []byte) []byte { return marked(norm.NFKC.Bytes(b)) }

// dotless is an i for programs that put it in upper case and back.
const dotless = 'ı'

// plainLetters returns a path in NFKD without the accents, as some programs look
// pages up by their titles.
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

// marked returns a normalized path in lower case, with the backslashes marked
// that came out of other characters. Slashes that did are slashes.
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

// decodeAgain decodes the percent-escapes that a decoded path still has, as a
// server does behind a proxy that has decoded once. What is no escape stays.
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
