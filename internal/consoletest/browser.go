package consoletest

import (
	"bytes"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/web/console/shell"
)

// Answer is a complete response.
type Answer struct {
	testing.TB
	Status int
	Header http.Header
	Body   string
}

// Client does not follow redirects, so that tests see them.
var Client = &http.Client{
	Timeout:       5 * time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Do sends a request as a person. Headers are "Name: value".
func (s *Site) Do(who, method, path, body string, headers ...string) Answer {
	s.Helper()
	q, err := http.NewRequestWithContext(s.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	q.Header.Set("Accept", "text/html")
	if who != Nobody {
		q.AddCookie(&http.Cookie{Name: shell.SessionCookie, Value: who}) //nolint:gosec // sent, not set
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	response, err := Client.Do(q)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{s.TB, response.StatusCode, response.Header, string(b)}
}

// Get requests a page as a person.
func (s *Site) Get(who, path string, headers ...string) Answer {
	s.Helper()
	return s.Do(who, http.MethodGet, path, "", headers...)
}

// Post sends a form as a person. The fields are names and values in turn.
func (s *Site) Post(who, path string, fields ...string) Answer {
	s.Helper()
	return s.Do(who, http.MethodPost, path, Form(fields...))
}

// Form encodes a form of names and values in turn.
func Form(fields ...string) string {
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return form.Encode()
}

// File is an uploaded file of a form.
type File struct{ Field, Content string }

// Upload sends a form with files as a person. The fields are names and values in turn.
func (s *Site) Upload(who, path string, files []File, fields ...string) Answer {
	s.Helper()
	body, mediaType := Multipart(s, files, fields...)
	return s.Do(who, http.MethodPost, path, body, "Content-Type: "+mediaType)
}

// Multipart encodes a form with files.
func Multipart(t testing.TB, files []File, fields ...string) (body, mediaType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = w.WriteField(fields[i], fields[i+1])
	}
	for _, f := range files {
		part, err := w.CreateFormFile(f.Field, "image")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(f.Content))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// Want ends the test unless the answer has that status.
func (a Answer) Want(status int) Answer {
	a.Helper()
	if a.Status != status {
		a.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	return a
}

// Has reports each text that the page lacks.
func (a Answer) Has(texts ...string) Answer {
	a.Helper()
	for _, text := range texts {
		if !strings.Contains(a.Body, text) {
			a.Errorf("no %q in the page:\n%s", text, a.Body)
		}
	}
	return a
}

// Lacks reports each text that the page contains.
func (a Answer) Lacks(texts ...string) Answer {
	a.Helper()
	for _, text := range texts {
		if strings.Contains(a.Body, text) {
			a.Errorf("%q is in the page:\n%s", text, a.Body)
		}
	}
	return a
}

// RedirectsTo ends the test unless the answer redirects there.
func (a Answer) RedirectsTo(path string) Answer {
	a.Helper()
	if a.Want(http.StatusSeeOther); a.Header.Get("Location") != path {
		a.Fatalf("redirect to %s, want %s", a.Header.Get("Location"), path)
	}
	return a
}

// Found returns the last group of the first match in the page.
func (a Answer) Found(form *regexp.Regexp) string {
	a.Helper()
	m := form.FindStringSubmatch(strings.ReplaceAll(a.Body, "&#43;", "+"))
	if m == nil {
		a.Fatalf("no %s in the page:\n%s", form, a.Body)
	}
	return m[len(m)-1]
}

// PNG returns an image that is one pixel high.
func PNG(t testing.TB, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var baseForm = regexp.MustCompile(`name="base" value="([0-9a-f]{32})"`)

// Base returns the version of the object that a form was made from.
func (a Answer) Base() string {
	a.Helper()
	return a.Found(baseForm)
}
