package rooms

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/console/shell"
)

// TestBrandLanguages parses the selected languages.
func TestBrandLanguages(t *testing.T) {
	t.Parallel()
	for form, want := range map[string]string{
		"":                          "null",
		"language=de":               `["de","en","es","fr","it","pt","ja","ar"]`,
		"language=en":               "null",
		"language=fr&languages=de":  `["fr","de"]`,
		"languages=de&languages=fr": `["de","fr"]`,
		"language=en&languages=xx":  `["en","xx"]`,
	} {
		fields, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		q := httptest.NewRequest(http.MethodPost, "/", nil)
		q.PostForm = fields
		x := &shell.Request{Context: echo.New().NewContext(q, nil)}
		got, err := json.Marshal(languagesIn(x))
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, want %s", form, got, want)
		}
	}
}
