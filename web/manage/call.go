package manage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
	"github.com/proofline/proofline/web/manage/jsonschema"
)

// maxBody is the default maximum size of a body in bytes. It fits a room with two logos and texts in
// every language.
const maxBody = 512 << 10

// maxNested is the maximum nesting depth of a JSON body.
const maxNested = 64

// call is a request to a route.
type call struct {
	context.Context
	echo  echo.Context
	actor account.Actor
	body  []byte
}

// reply is the answer of a route.
type reply struct {
	body      any    // JSON; nil: no body
	raw       []byte // body of another media type, instead of body
	mediaType string
	location  string // URL of the created object
	etag      string
	cache     string  // Cache-Control; empty: no-store
	next      *string // cursor of the next page; nil: none
	status    int     // 0: status of the route
}

func answer(body any) (reply, error) { return reply{body: body}, nil }

// readBody reads a request's body. A body that is not empty must be declared as JSON.
func readBody(r *http.Request, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, int64(most)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, ErrTooLarge
	}
	if err != nil {
		return nil, invalid.Field("", "could not be read to its end")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if len(body) > 0 && (err != nil || media != "application/json") {
		return nil, ErrMediaType
	}
	if wrong := (jsontext.Form{Depth: maxNested}).Check(body); wrong != nil {
		return nil, invalid.Field(wrong.Field, wrong.Detail)
	}
	return body, nil
}

// checkText rejects parameters that are not valid text, because the database cannot store them.
func (c *call) checkText() error {
	for i, name := range c.echo.ParamNames() {
		if !isText(c.echo.ParamValues()[i]) {
			return invalid.Field(name, wantText)
		}
	}
	for name, values := range c.echo.QueryParams() {
		if !isText(name) || slices.ContainsFunc(values, func(value string) bool { return !isText(value) }) {
			return invalid.Field(strings.ToValidUTF8(name, ""), wantText)
		}
	}
	return nil
}

const wantText = "must be UTF-8 without NUL"

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (c *call) param(name string) string { return c.echo.Param(name) }

// id parses a UUID in the path. For an invalid one it returns [account.ErrNotFound].
func (c *call) id(name string) (uuid.UUID, error) {
	id, err := uuid.Parse(c.param(name))
	if err != nil || id == uuid.Nil {
		return uuid.Nil, account.ErrNotFound
	}
	return id, nil
}

func (c *call) query(name string) string { return c.echo.QueryParam(name) }

// limit parses the page size; 0 if it is missing.
func (c *call) limit(most int) (int, error) {
	text := c.query("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid.Field("limit", fmt.Sprintf("must be a whole number from 1 to %d", most))
	}
	return n, nil
}

// flag parses an optional boolean parameter.
func (c *call) flag(name string) (bool, error) {
	switch c.query(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalid.Field(name, "must be true or false")
}

// time parses an optional time parameter; the zero time if it is missing.
func (c *call) time(name string) (time.Time, error) {
	text := c.query(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, invalid.Field(name, "must be an RFC 3339 time such as 2030-05-01T12:00:00Z")
	}
	return t, nil
}

// decode parses the request's body. The error is an [*invalid.Error].
func decode[T any](c *call) (in T, err error) {
	if wrong := (jsontext.Form{Depth: maxNested, Name: misnamed(reflect.TypeFor[T]())}).Check(c.body); wrong != nil {
		return in, invalid.Field(wrong.Field, wrong.Detail)
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	err = d.Decode(&in)
	if err == nil && d.Decode(new(any)) != io.EOF { //nolint:errorlint // never wrapped
		err = errors.New("more than one value")
	}
	if err != nil {
		return in, unreadable(err)
	}
	return in, nil
}

// misnamed returns a check for member names that differ from those of type t only in case, because
// Go's decoder accepts them, even next to the right one.
func misnamed(t reflect.Type) func(within []string, name string) string {
	return func(within []string, name string) string {
		at := t
		for _, outer := range within {
			at = membersOf(at)[outer]
		}
		known := membersOf(at)
		if _, ok := known[name]; ok || known == nil {
			return ""
		}
		for right := range known {
			if strings.EqualFold(right, name) {
				return "is unknown; the field is called " + right
			}
		}
		return ""
	}
}

// memberCache caches the results of membersOf, because a body may have many values of one type.
var memberCache sync.Map // keys are reflect.Type

// membersOf returns the JSON members, with their types, of a struct or of the elements of a list; nil
// for other types.
func membersOf(t reflect.Type) map[string]reflect.Type {
	kept, ok := memberCache.Load(t)
	if !ok {
		kept, _ = memberCache.LoadOrStore(t, readMembers(t))
	}
	list, _ := kept.(map[string]reflect.Type)
	return list
}

func readMembers(t reflect.Type) map[string]reflect.Type {
	for t != nil && !jsonschema.IsKnown(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || jsonschema.IsKnown(t) {
		return nil
	}
	list := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, ok := jsonschema.MemberOf(f); ok {
			list[name] = f.Type
		}
	}
	return list
}

// unreadable converts a decoding error to an [*invalid.Error].
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return invalid.Field(wrong.Field, "cannot be a "+wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid.Field(strings.Trim(name, `"`), "is unknown")
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return invalid.Field("", fmt.Sprintf("must be a JSON object; after %d bytes: %v", wrong.Offset, wrong))
	}
	return invalid.Field("", "must be a JSON object as described in the OpenAPI document")
}

// encode encodes the body of an answer.
func (r reply) encode() (mediaType string, body []byte, err error) {
	switch {
	case r.raw != nil:
		return r.mediaType, r.raw, nil
	case r.body == nil:
		return "", nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r.body); err != nil {
		return "", nil, fmt.Errorf("write answer: %w", err)
	}
	return "application/json", b.Bytes(), nil
}

// statusOf returns the status of the answer.
func (r reply) statusOf(to *route) int { return cmp.Or(r.status, to.status, http.StatusOK) }

// send sends the answer.
func (r reply) send(c echo.Context, status int) error {
	mediaType, body, err := r.encode()
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Cache-Control", cmp.Or(r.cache, "no-store"))
	if r.location != "" {
		h.Set("Location", r.location)
	}
	if r.etag != "" {
		h.Set("ETag", r.etag)
	}
	if r.next != nil {
		h.Set("Link", nextLink(c.Request().URL, *r.next))
	}
	return write(c, status, mediaType, body)
}

func write(c echo.Context, status int, mediaType string, body []byte) error {
	if len(body) == 0 {
		return c.NoContent(status)
	}
	c.Response().Header().Set("Content-Length", strconv.Itoa(len(body)))
	return c.Blob(status, mediaType, body)
}

// nextLink returns the Link header of the next page (https://www.rfc-editor.org/rfc/rfc8288).
func nextLink(u *url.URL, cursor string) string {
	query := u.Query()
	query.Set("cursor", cursor)
	return "<" + u.EscapedPath() + "?" + query.Encode() + `>; rel="next"`
}

// cursorOf returns the cursor of the next page in the form of answers; nil if there is none.
func cursorOf(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}
