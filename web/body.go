package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/proofline/proofline/internal/invalid"
)

// visitorBody is the maximum size of a visitor's request body, in bytes.
const visitorBody = 4 << 10

// scratch holds buffers that are reused from request to request.
type scratch struct {
	body    []byte // request body
	receipt []byte
	answer  object
}

var scratches = sync.Pool{New: func() any { return &scratch{} }}

func borrow() *scratch {
	s, _ := scratches.Get().(*scratch)
	return s
}

// giveBack returns the buffers to the pool; call it after the answer is written.
func (s *scratch) giveBack() { scratches.Put(s) }

// readBody appends a request's body to dst. A body that is not empty must be declared as JSON.
// Errors: errMediaType and those of readAll.
func readBody(r *http.Request, dst []byte, limit int) ([]byte, error) {
	dst, err := readAll(r, dst, limit)
	if err == nil && len(dst) > 0 && !isJSON(r.Header.Get("Content-Type")) {
		return dst, errMediaType
	}
	return dst, err
}

// readAll appends a request's body to dst, whatever its declared type. Errors: errTooLarge, and
// *invalid.Error if the body ends early.
func readAll(r *http.Request, dst []byte, limit int) ([]byte, error) {
	if r.ContentLength > int64(limit) {
		return dst, errTooLarge
	}
	for {
		if cap(dst)-len(dst) < 512 {
			dst = append(make([]byte, 0, 2*cap(dst)+1024), dst...)
		}
		n, err := r.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return dst, errTooLarge
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, invalid.Field("", "could not be read to its end")
		}
	}
}

func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// readText parses a JSON object with at most one member, a string. It returns "" if the member is
// missing or null. The error is an [*invalid.Error] that lists all problems.
func readText(body []byte, name string) (string, error) {
	if text, ok := plainMember(body, name); ok {
		return text, nil
	}
	texts, err := anyMembers(body, name)
	return texts[name], err
}

// plainMember parses the usual form of such an object, {"name":"text"} without escapes.
func plainMember(body []byte, name string) (string, bool) {
	rest, isObject := bytes.CutPrefix(body, []byte(`{"`))
	rest, isNamed := bytes.CutPrefix(rest, []byte(name))
	rest, isText := bytes.CutPrefix(rest, []byte(`":"`))
	rest, isWhole := bytes.CutSuffix(rest, []byte(`"}`))
	if !isObject || !isNamed || !isText || !isWhole {
		return "", false
	}
	for _, c := range rest {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return "", false
		}
	}
	return string(rest), true
}

// anyMembers parses a JSON object of any form whose members are among names, and are strings or null.
func anyMembers(body []byte, names ...string) (map[string]string, error) {
	return membersWith(nil, body, names...)
}

// membersWith parses a JSON object like anyMembers that may have other members of any kind, and returns their JSON.
func membersWith(others []string, body []byte, names ...string) (map[string]string, error) {
	names = append(names, others...)
	d := json.NewDecoder(bytes.NewReader(body))
	if start, _ := d.Token(); !json.Valid(body) || start != json.Delim('{') {
		return nil, invalid.Field("", "must be a JSON object")
	}
	var wrong invalid.List
	texts := map[string]string{}
	for d.More() && len(wrong) < invalid.Max {
		key, _ := d.Token() // no error, because the body is valid JSON
		var raw json.RawMessage
		_ = d.Decode(&raw)
		name := fmt.Sprint(key)
		var text *string
		isText := json.Unmarshal(raw, &text) == nil // null: no text
		if slices.Contains(others, name) {
			isText, text = true, new(string(raw))
		}
		_, seen := texts[name]
		switch {
		case !slices.Contains(names, name):
			wrong.Add(name, "is unknown; known fields are "+strings.Join(names, ", "))
		case seen:
			wrong.Add(name, "is given twice")
		case !isText:
			wrong.Add(name, "must be a text")
		}
		if texts[name] = ""; text != nil && isText {
			texts[name] = *text
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	return texts, nil
}
