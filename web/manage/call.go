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
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/jsontext"
	"github.com/proofline/proofline/room"
)

// maxBody is the most bytes of a body: a room with two logos, and texts in
// every language.
const maxBody = 512 << 10

// maxNested is how many lists and objects of a body may be within each other.
const maxNested = 64

// call is one request to a route.
type call struct {
	context.Context
	echo  echo.Context
	actor account.Actor
	body  []byte
}

// reply is what a route answers.
type reply struct {
	body      any    // JSON; nil for none
	raw       []byte // instead of body, of another media type
	mediaType string
	location  string // of what was made
	etag      string
	cache     string  // Cache-Control; empty: nobody keeps it
	next      *string // cursor of the next page
	status    int     // 0: that of the route
}

func answer(body any) (reply, error) { return reply{body: body}, nil }

// readBody reads the body of a request. An empty one may be declared as
// anything, any other only as JSON.
func readBody(r *http.Request, most int) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, int64(most)))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, ErrTooLarge
	}
	if err != nil {
		return nil, invalid("", "could not be read to its end")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if len(body) > 0 && (err != nil || media != "application/json") {
		return nil, ErrMediaType
	}
	if wrong := (jsontext.Form{Depth: maxNested}).Check(body); wrong != nil {
		return nil, invalid(wrong.Field, wrong.Detail)
	}
	return body, nil
}

// invalid says what is wrong with one field.
func invalid(field, detail string) error {
	return &room.InvalidError{Problems: []fairness.Problem{{Field: field, Detail: detail}}}
}

// checkText refuses what no text is, in path or query: a database would.
func (c *call) checkText() error {
	for i, name := range c.echo.ParamNames() {
		if !isText(c.echo.ParamValues()[i]) {
			return invalid(name, wantText)
		}
	}
	for name, values := range c.echo.QueryParams() {
		if !isText(name) || slices.ContainsFunc(values, func(value string) bool { return !isText(value) }) {
			return invalid(strings.ToValidUTF8(name, ""), wantText)
		}
	}
	return nil
}

const wantText = "must be UTF-8 without NUL"

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (c *call) param(name string) string { return c.echo.Param(name) }

// id reads a UUID of the path. What is none names nothing.
func (c *call) id(name string) (uuid.UUID, error) {
	id, err := uuid.Parse(c.param(name))
	if err != nil || id == uuid.Nil {
		return uuid.Nil, account.ErrNotFound
	}
	return id, nil
}

func (c *call) query(name string) string { return c.echo.QueryParam(name) }

// limit reads how many items a page is to have; 0 when it is not said.
func (c *call) limit(most int) (int, error) {
	text := c.query("limit")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, invalid("limit", fmt.Sprintf("must be a whole number from 1 to %d", most))
	}
	return n, nil
}

// flag reads a parameter that is true or false, or not there.
func (c *call) flag(name string) (bool, error) {
	switch c.query(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, invalid(name, "must be true or false")
}

// time reads a moment; the zero time when it is not said.
func (c *call) time(name string) (time.Time, error) {
	text := c.query(name)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, invalid(name, "must be an RFC 3339 time such as 2030-05-01T12:00:00Z")
	}
	return t, nil
}

// decode reads the body of a request. The error is an [*room.InvalidError].
func decode[T any](c *call) (in T, err error) {
	if wrong := (jsontext.Form{Depth: maxNested, Name: misnamed(reflect.TypeFor[T]())}).Check(c.body); wrong != nil {
		return in, invalid(wrong.Field, wrong.Detail)
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

// misnamed returns what says that a member is only nearly called as one of a
// type: Go's decoder takes it, even where the right one is there too.
func misnamed(t reflect.Type) func(within []string, name string) string {
	return func(within []string, name string) string {
		at := t
		for _, outer := range within {
			at = members(at)[outer]
		}
		known := members(at)
		if _, ok := known[name]; ok || known == nil {
			return ""
		}
		for right := range known {
			if strings.EqualFold(right, name) {
				return "is not known here; " + right + " is"
			}
		}
		return ""
	}
}

// membersOf keeps what members returns: a body may have many of one type.
var membersOf sync.Map // by reflect.Type

// members are those that a struct, or a list of it, has in JSON, with their types;
// nil of other types.
func members(t reflect.Type) map[string]reflect.Type {
	kept, ok := membersOf.Load(t)
	if !ok {
		kept, _ = membersOf.LoadOrStore(t, readMembers(t))
	}
	list, _ := kept.(map[string]reflect.Type)
	return list
}

func readMembers(t reflect.Type) map[string]reflect.Type {
	for t != nil && known[t] == nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || known[t] != nil {
		return nil
	}
	list := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, ok := memberOf(f); ok {
			list[name] = f.Type
		}
	}
	return list
}

// unreadable says what kept a body from being read.
func unreadable(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return invalid(wrong.Field, "cannot be a "+wrong.Value)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return invalid(strings.Trim(name, `"`), "is not known here")
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return invalid("", fmt.Sprintf("must be a JSON object; after %d bytes: %v", wrong.Offset, wrong))
	}
	return invalid("", "must be a JSON object as the document of the API has it")
}

// encode writes the body of an answer.
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

// statusOf is the status of an answer to a route.
func (r reply) statusOf(to *route) int { return cmp.Or(r.status, to.status, http.StatusOK) }

// send answers a request.
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

// nextLink is the header that leads to the next page
// (https://www.rfc-editor.org/rfc/rfc8288).
func nextLink(u *url.URL, cursor string) string {
	query := u.Query()
	query.Set("cursor", cursor)
	return "<" + u.EscapedPath() + "?" + query.Encode() + `>; rel="next"`
}

// cursorOf is the cursor of the next page as answers have it: null for none.
func cursorOf(next string) *string {
	if next == "" {
		return nil
	}
	return &next
}
