package server

import (
	"errors"
	"testing"
)

func TestParsePublicURL(t *testing.T) {
	for text, want := range map[string]string{
		"https://queue.example.com":      "https://queue.example.com",
		"https://queue.example.com/":     "https://queue.example.com",
		"http://127.0.0.1:8080":          "http://127.0.0.1:8080",
		"https://example.com/queue":      "https://example.com/queue",
		"https://example.com/queue///":   "https://example.com/queue",
		"http://[::1]:8080":              "http://[::1]:8080",
		"":                               "",
		"queue.example.com":              "",
		"ftp://example.com":              "",
		"https://":                       "",
		"https:///queue":                 "",
		"https://me@example.com":         "",
		"https://example.com/?q=1":       "",
		"https://example.com/#top":       "",
		"https://example.com/a%2fb":      "",
		"https://example.com:port/queue": "",
	} {
		got, err := ParsePublicURL(text)
		if got != want || (want == "") != errors.Is(err, ErrPublicURL) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
