package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// needle is one way to write a value that identifies somebody.
type needle struct {
	value string // the value, as a visitor types it
	way   string
	text  []byte
	folds bool // upper and lower case do not matter; text is in lower case
}

// needlesOf returns the ways to write a value: plain, in hex, in base64, percent-encoded, and the same for its SHA-256.
func needlesOf(value string) (list []needle) {
	add := func(way string, folds bool, text string) {
		if folds {
			text = strings.ToLower(text)
		}
		list = append(list, needle{value, way, []byte(text), folds})
	}
	for _, form := range formsOf(value) {
		add("plain", true, form)
		add("percent-encoded", true, url.QueryEscape(form))
		add("percent-encoded in a path", true, url.PathEscape(form))
		add("percent-encoded, each byte", true, everyByte(form))
		sum := sha256.Sum256([]byte(form))
		for _, of := range []struct{ way, text string }{{"", form}, {"SHA-256 ", string(sum[:])}} {
			add(of.way+"hex", true, hex.EncodeToString([]byte(of.text)))
			for shift := range 3 {
				for _, e := range []struct {
					name string
					*base64.Encoding
				}{{"base64", base64.RawStdEncoding}, {"base64url", base64.RawURLEncoding}} {
					add(fmt.Sprintf("%s%s after %d bytes", of.way, e.name, shift), false, aligned(e.Encoding, of.text, shift))
				}
			}
		}
		list = append(list, needle{value, "SHA-256 raw", sum[:], false})
	}
	return list
}

// formsOf returns a value as it is typed, in lower case, and without what lists ignore.
func formsOf(value string) (list []string) {
	bare := strings.NewReplacer("-", "", " ", "").Replace(value)
	for _, form := range []string{value, strings.ToLower(value), strings.ToUpper(value), bare, strings.ToLower(bare), strings.ToUpper(bare)} {
		if !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	return list
}

func everyByte(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// aligned returns the characters that every base64 text has in which other bytes, shift of which precede modulo 3, stand
// around the text.
func aligned(e *base64.Encoding, text string, shift int) string {
	encoded := e.EncodeToString([]byte(strings.Repeat("\x00", shift) + text))
	bits := 8 * (shift + len(text))
	return encoded[(8*shift+5)/6 : bits/6]
}

// found lists what of some values a text has, in which way. A gzip file is searched as what it holds, too.
func found(text []byte, needles []needle) (list []string) {
	for _, text := range unpacked(text) {
		folded := bytes.ToLower(text)
		for _, n := range needles {
			in := text
			if n.folds {
				in = folded
			}
			if bytes.Contains(in, n.text) {
				list = append(list, fmt.Sprintf("%s (%s)", n.value, n.way))
			}
		}
	}
	return list
}

func unpacked(text []byte) [][]byte {
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		if inside, err := io.ReadAll(z); err == nil {
			return [][]byte{text, inside}
		}
	}
	return [][]byte{text}
}

// TestSearch finds a value in every way in which it can be written, wherever it stands, and nothing else.
func TestSearch(t *testing.T) {
	t.Parallel()
	const value = "K7QF-9X2M-4TRB-0A8C"
	needles := needlesOf(value)
	sum := sha256.Sum256([]byte(value))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("a row with " + value))
	_ = z.Close()
	texts := map[string][]byte{
		"plain": []byte("code=" + value + "&"), "lower case": []byte(strings.ToLower(value)), "without dashes": []byte("K7QF9X2M4TRB0A8C"),
		"hex": fmt.Appendf(nil, "\\x00%x00", value), "HEX": fmt.Appendf(nil, "%X", value),
		"percent-encoded": []byte(everyByte(value)), "SHA-256": append([]byte("x"), sum[:]...), "SHA-256 in hex": fmt.Appendf(nil, "%x", sum),
		"gzip": packed.Bytes(),
	}
	for shift := range 4 {
		for after := range 4 {
			around := func(s string) []byte {
				return []byte(strings.Repeat("\xff", shift) + s + strings.Repeat("\xff", after))
			}
			texts[fmt.Sprintf("base64 %d %d", shift, after)] = []byte(base64.StdEncoding.EncodeToString(around(value)))
			texts[fmt.Sprintf("base64url %d %d", shift, after)] = []byte(base64.RawURLEncoding.EncodeToString(around(value)))
			texts[fmt.Sprintf("SHA-256 base64 %d %d", shift, after)] = []byte(base64.StdEncoding.EncodeToString(around(string(sum[:]))))
			texts[fmt.Sprintf("SHA-256 base64url %d %d", shift, after)] = []byte(base64.URLEncoding.EncodeToString(around(string(sum[:]))))
		}
	}
	for way, text := range texts {
		if len(found(text, needles)) == 0 {
			t.Errorf("%s: %q is not found in %q", way, value, text)
		}
	}
	for _, text := range []string{"", "K7QF-9X2M-4TRB-0A8D", strings.Repeat("K7QF-9X2M-4TRB", 3), "anna@example.org"} {
		if list := found([]byte(text), needles); len(list) > 0 {
			t.Errorf("%q is found in %q", list, text)
		}
	}
}
