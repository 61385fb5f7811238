package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/branding"
)

// answerTimeout is the maximum time that an answer may take.
const answerTimeout = 15 * time.Second

// Request is a request to the console.
type Request struct {
	echo.Context
	Identity
	shell  *Shell
	isData bool // the request is from a script that asks for data
}

// Now returns the time.
func (x *Request) Now() time.Time { return x.shell.options.Now() }

// Wait returns a context that ends when the time for an answer is over.
func (x *Request) Wait() (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.Request().Context(), answerTimeout)
}

// Form returns the value of a form field, or "". Query parameters are ignored.
func (x *Request) Form(name string) string { return x.Request().PostForm.Get(name) }

// FormWord returns the value of a form field without surrounding space.
func (x *Request) FormWord(name string) string { return strings.TrimSpace(x.Form(name)) }

// FormText returns the value of a form field of several lines, with line feeds only.
func (x *Request) FormText(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(x.Form(name), "\r\n", "\n"))
}

// FormList returns all values of a form field.
func (x *Request) FormList(name string) []string { return x.Request().PostForm[name] }

// Field is a field of a form that is sent again.
type Field struct{ Name, Value string }

// Fields returns the fields of the form, to be sent once more.
func (x *Request) Fields() (list []Field) {
	for name, values := range x.Request().PostForm {
		if len(values) > 0 && name != "confirmed" {
			list = append(list, Field{name, values[0]})
		}
	}
	slices.SortFunc(list, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ID returns the id in the path, or [account.ErrNotFound].
func (x *Request) ID() (uuid.UUID, error) {
	id, err := uuid.Parse(x.Param("id"))
	if err != nil {
		return id, account.ErrNotFound
	}
	return id, nil
}

// ReadUpload reads a form with files of at most a total number of bytes.
func (x *Request) ReadUpload(limit int64) error {
	q := x.Request()
	if !strings.HasPrefix(q.Header.Get("Content-Type"), "multipart/") {
		return nil // the form has been read
	}
	q.Body = http.MaxBytesReader(x.Response(), q.Body, limit)
	err := q.ParseMultipartForm(limit)
	tooLarge := (*http.MaxBytesError)(nil)
	if errors.As(err, &tooLarge) || errors.Is(err, multipart.ErrMessageTooLarge) {
		return ErrTooLarge
	}
	if err != nil {
		return invalid.Field("", "must be a form")
	}
	return nil
}

// MaxLogoUpload is the maximum size of a form with logos: two new logos, two that are kept, texts and
// CSS.
const MaxLogoUpload = 768 << 10 // bytes

// Logo returns the data URL of a logo: of the uploaded file, or else the one in the form, unless the
// form asks to remove it.
func (x *Request) Logo(name string) (string, error) {
	if x.Request().MultipartForm != nil {
		for _, header := range x.Request().MultipartForm.File[name+"_file"] {
			if header.Size == 0 {
				continue // no file was chosen
			}
			file, err := header.Open()
			if err != nil {
				return "", fmt.Errorf("cannot be read: %w", err)
			}
			content, err := io.ReadAll(file)
			_ = file.Close()
			if err != nil {
				return "", fmt.Errorf("cannot be read: %w", err)
			}
			return branding.ReadLogo(content)
		}
	}
	if x.Form(name+"_remove") != "" {
		return "", nil
	}
	return x.Form(name), nil
}

// Download answers with a file to save. The name must not contain quotes.
func (x *Request) Download(name, contentType string, content []byte) error {
	x.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return x.Blob(http.StatusOK, contentType, content)
}

// Cookies that only this host can set, because of their prefix
// (https://www.rfc-editor.org/rfc/rfc6265bis#name-the-__host-prefix).
const (
	SessionCookie = "__Host-proofline.session" // token of the session
	knownCookie   = "__Host-proofline.known"   // token of a browser that has signed in before
)

// SetToken sets a cookie that scripts and other sites' forms cannot use. It is Lax, not Strict:
// people follow links from mails, and return from an identity provider.
func (x *Request) SetToken(name, value string, age time.Duration) {
	x.SetCookie(&http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// RemoveToken removes a cookie.
func (x *Request) RemoveToken(name string) { x.SetToken(name, "", -time.Second) }

// Token returns the value of a cookie, or "".
func (x *Request) Token(name string) string {
	c, err := x.Cookie(name)
	if err != nil {
		return ""
	}
	return c.Value
}

// SetSession sets the cookie of the session.
func (x *Request) SetSession(token string) { x.SetToken(SessionCookie, token, account.SessionLife) }

// SetKnown marks the browser as one that has signed in before.
func (x *Request) SetKnown(token string) { x.SetToken(knownCookie, token, account.KnownLife) }

// Client describes the browser.
func (x *Request) Client() account.Client {
	addr, err := netip.ParseAddr(x.RealIP())
	if err != nil {
		addr = netip.IPv6Unspecified() // all browsers with an unknown address share one rate limit
	}
	return account.Client{Addr: addr, UserAgent: x.Request().UserAgent(), Known: x.Token(knownCookie)}
}
