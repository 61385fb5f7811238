package manage

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
)

// TestMatches parses If-Match headers.
func TestMatches(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{
		`"a"`: true, `"b"`: false, `"b", "a"`: true, `*`: true, `W/"a"`: false, ``: false, `a`: false, ` "a" `: true, `"b",*`: true, `,`: false,
	} {
		if got := matches(header, `"a"`); got != want {
			t.Errorf("%q: %t, want %t", header, got, want)
		}
	}
}

func FuzzMatches(f *testing.F) {
	f.Add(`"a", "b"`)
	f.Fuzz(func(t *testing.T, header string) {
		if matches(header, `"tag"`) && !strings.Contains(header, `"tag"`) && !strings.Contains(header, "*") {
			t.Errorf("%q matches", header)
		}
	})
}

// FuzzDecode parses bodies. If that fails, it is the sender's fault.
func FuzzDecode(f *testing.F) {
	f.Add(`{"url":"https://example.com","events":["room.ended"]}`)
	f.Add(`{"url":7} {}`)
	f.Fuzz(func(t *testing.T, body string) {
		_, err := decode[webhook.EndpointConfig](&call{body: []byte(body)})
		if wrong, ok := err.(*invalid.Error); err != nil && (!ok || len(wrong.Problems) == 0 || wrong.Problems[0].Detail == "") { //nolint:errorlint // as it is
			t.Errorf("%q: %v", body, err)
		}
		if _, _, err := splitHost([]byte(body)); err != nil {
			if _, ok := err.(*invalid.Error); !ok { //nolint:errorlint // as it is
				t.Errorf("%q: %v", body, err)
			}
		}
	})
}

// TestNames: a member has one name, and occurs once.
func TestNames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decode func(*call) error
		body   string
		field  string // of the problem; empty: there is none
	}{
		"right":                         {decoded[wire.TokenInput], `{"name":"ci","scopes":["read"],"life":"1h"}`, ""},
		"another case":                  {decoded[wire.TokenInput], `{"name":"ci","Scopes":["read"]}`, "Scopes"},
		"the same name in another case": {decoded[wire.TokenInput], `{"life":"1h","LIFE":"8760h"}`, "LIFE"},
		"a letter that folds":           {decoded[wire.TokenInput], `{"\u017fcopes":["admin"]}`, "\u017fcopes"},
		"twice":                         {decoded[wire.TokenInput], `{"life":"1h","life":"8760h"}`, "life"},
		"unknown":                       {decoded[wire.TokenInput], `{"lives":9}`, "lives"},
		"another case in a list":        {decoded[wire.ReportInput], reported(`"fail_open":[{"ID":"` + sampleID + `","from":1,"until":2,"requests":0}]`), "rooms[0].fail_open[0].ID"},
		"names that are free":           {decoded[wire.ReportInput], `{"node":"` + sampleID + `","counts":{"a":1,"A":2}}`, ""},
		"names that are free, twice":    {decoded[wire.ReportInput], `{"node":"` + sampleID + `","counts":{"a":1,"a":2}}`, "counts.a"},
		"a document within":             {decoded[wire.SiteInput], `{"name":"shop","rules":{"Version":1,"query":{"a":{},"A":{}}}}`, ""},
		"a document within, and twice":  {decoded[wire.SiteInput], `{"name":"shop","rules":{"version":1,"version":2}}`, "rules.version"},
	} {
		err := c.decode(&call{body: []byte(c.body)})
		wrong, ok := errors.AsType[*invalid.Error](err)
		if c.field == "" && err != nil || c.field != "" && (!ok || len(wrong.Problems) != 1 || wrong.Problems[0].Field != c.field) {
			t.Errorf("%s: %v, want a problem of %q", name, err, c.field)
		}
	}
}

func decoded[T any](c *call) error {
	_, err := decode[T](c)
	return err
}

// FuzzKey: a key is printable, and has no quotes of its own.
func FuzzKey(f *testing.F) {
	f.Add(`"one"`)
	f.Add(`"one`)
	f.Fuzz(func(t *testing.T, header string) {
		form := keyForm.FindStringSubmatch(header)
		if form == nil {
			return
		}
		if key := form[1] + form[2]; key == "" || len(key) > 200 || strings.ContainsAny(key, "\" \n") || form[1] != "" && form[2] != "" {
			t.Errorf("%q is the key %q", header, key)
		}
	})
}

// TestNextLink: the link leads to the next page of the same list.
func TestNextLink(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodGet, "/v1/rooms?search=a%26b&limit=2&cursor=old", nil)
	if got, want := nextLink(r.URL, "new"), `</v1/rooms?cursor=new&limit=2&search=a%26b>; rel="next"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestGuardWithoutServerToken: an empty token permits nothing.
func TestGuardWithoutServerToken(t *testing.T) {
	t.Parallel()
	a := New(Options{Status: func(error) int { return 0 }})
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Bearer x", "Basic x"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/rooms", nil)
		r.Header.Set("Authorization", authorization)
		c := echo.New().NewContext(r, httptest.NewRecorder())
		if err := a.Guard(func(echo.Context) error { return nil })(c); err != ErrToken { //nolint:errorlint // as it is
			t.Errorf("%q: %v", authorization, err)
		}
	}
}
