// Package reply sends answers: it has the header values that many of them share, and compresses.
//
// Header values are slices, because net/http would otherwise allocate one for each answer. They must not be modified.
package reply

import (
	"bytes"
	"compress/gzip"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// Values of Content-Type.
var (
	JSON   = []string{"application/json"}
	Text   = []string{"text/plain; charset=utf-8"}
	Octets = []string{"application/octet-stream"}
)

// Values of Cache-Control.
var (
	NoCache   = []string{"no-cache"}
	NoStore   = []string{"no-store"}
	Immutable = []string{"public, max-age=31536000, immutable"}
	Minutes   = []string{"public, max-age=300"} // of what organizers may change
)

var (
	acceptEncoding = []string{"Accept-Encoding"}
	gzipped        = []string{"gzip"}
)

// Send sends an answer with a body.
func Send(c echo.Context, status int, contentType []string, body []byte) error {
	h := c.Response().Header()
	h["Content-Type"] = contentType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	c.Response().WriteHeader(status)
	_, err := c.Response().Write(body)
	return err
}

// Coded sets the headers of an answer that depends on Accept-Encoding, and returns the body that the client prefers:
// plain, or the result of compressed. A result of nil is not used.
func Coded(c echo.Context, plain []byte, compressed func() []byte) []byte {
	h := c.Response().Header()
	h["Vary"] = acceptEncoding
	if !acceptsGzip(c.Request().Header["Accept-Encoding"]) {
		return plain
	}
	short := compressed()
	if short == nil {
		return plain
	}
	h["Content-Encoding"] = gzipped
	return short
}

// acceptsGzip reports whether Accept-Encoding headers allow gzip
// (https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3).
func acceptsGzip(headers []string) bool {
	for coding := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, isWeight := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			return !isWeight || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Compress returns content compressed by gzip.
func Compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	_, _ = w.Write(content) // memory writes do not fail
	_ = w.Close()
	return b.Bytes()
}

// WithParameter sets a parameter of a URL and removes existing ones of the same name, because
// connectors read only the first, even if it is invalid.
func WithParameter(u url.URL, name, value string) url.URL {
	var parts []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		key, _, _ := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(key); part != "" && (err != nil || decoded != name) {
			parts = append(parts, part)
		}
	}
	u.RawQuery = strings.Join(append(parts, name+"="+url.QueryEscape(value)), "&")
	return u
}
