package rooms

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/locale"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/page"
)

// previewView is the data of a preview.
type previewView struct {
	subject
	State, Lang, Scheme string
	States              []page.Example
	Languages           []languageView
}

// newPreviewView selects the given state, language and scheme. The defaults are the first state, the
// room's own language and a light page.
func newPreviewView(of subject, b *branding.Brand, state, lang, scheme string) previewView {
	v := previewView{
		subject: of, State: page.PreviewOf(page.Sample{}, state).Name, States: page.Previews(page.Sample{}),
		Lang: string(page.Match("", lang, looks.Languages(b)...)), Scheme: string(style.Light),
	}
	if scheme == string(style.Dark) {
		v.Scheme = scheme
	}
	for _, code := range branding.Languages {
		v.Languages = append(v.Languages, languageView{Code: code, Name: locale.Name(code)})
	}
	return v
}

// preview answers with the preview page.
func (b *brands) preview(x *shell.Request) error {
	of, err := b.subject(x.Request().Context(), x)
	if err != nil {
		return err
	}
	return x.Page("room-preview", newPreviewView(of, &of.config.Brand, x.QueryParam("state"), x.QueryParam("lang"),
		x.QueryParam("scheme")))
}

// frame answers with the page that a visitor sees, with sample figures.
func (b *brands) frame(x *shell.Request) error {
	of, err := b.subject(x.Request().Context(), x)
	if err != nil {
		return err
	}
	return b.picture(x, of, of.config.Brand, x.QueryParam)
}

// unsaved does what frame does, with a brand that is not stored. Invalid parts of the brand are
// left out.
func (b *brands) unsaved(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	of, sent, _, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	return b.picture(x, of, sent, x.Form)
}

// framePolicy restricts a preview to its own style, identified by a nonce, and its logo. It runs no
// scripts, sends no forms, and can only be embedded in our own pages.
const framePolicy = "default-src 'none'; style-src 'self' 'nonce-%s'; img-src 'self' data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// picture answers with a state of the visitors' page.
func (b *brands) picture(x *shell.Request, of subject, shown branding.Brand, chosen func(string) string) error {
	pages, err := b.visitor()
	if err != nil {
		return err
	}
	nonce, err := newNonce(rand.Reader)
	if err != nil {
		return err
	}
	v := newPreviewView(of, &shown, chosen("state"), chosen("lang"), chosen("scheme"))
	in := page.Inline{Nonce: nonce, CSS: cssIn(&shown, style.Scheme(v.Scheme)), Logo: cmp.Or(shown.Logo, of.inherited)}
	if v.Scheme == string(style.Dark) && shown.Dark.Logo != "" {
		in.Logo = shown.Dark.Logo
	}
	var body bytes.Buffer
	if err := pages.Preview(&body, page.PreviewOf(of.sample(&shown, page.Lang(v.Lang)), v.State).View, in); err != nil {
		return fmt.Errorf("preview %s: %w", of.Path, err)
	}
	x.Response().Header().Set("Content-Security-Policy", fmt.Sprintf(framePolicy, nonce))
	return x.HTMLBlob(http.StatusOK, body.Bytes())
}

// cssIn returns the stylesheet of a brand, without malformed colours.
func cssIn(b *branding.Brand, scheme style.Scheme) []byte {
	look := looks.Looks(b)
	css, err := look.In(scheme)
	if errors.Is(err, page.ErrColor) {
		look.Colors, look.Dark = page.Colors{}, page.Colors{}
		css, _ = look.In(scheme) // cannot fail without colours
	}
	return css
}

// sample returns the sample data of previews.
func (s subject) sample(b *branding.Brand, lang page.Lang) page.Sample {
	sample := page.Sample{Room: s.room, Lang: lang, Now: s.now, Claim: room.DefaultClaim}
	sample.Room.Offered, sample.Room.Texts = looks.Languages(b), looks.Texts(b, lang)
	if s.config.Claim != nil {
		sample.Claim = time.Duration(*s.config.Claim)
	}
	if u, ok := s.config.Target(""); ok {
		sample.Target = u.Scheme + "://" + u.Host
	}
	return sample
}

// noManifest replaces the manifest if the assets were not built: previews then have only the
// organizer's style.
const noManifest = `{"page.js": "page.js", "check.js": "check.js", "checker.js": "checker.js", "blind.js": "blind.js", "work.js": "work.js", "solver.js": "solver.js", "page.css": "page.css", "icon.svg": "icon.svg"}`

// openPages loads the visitors' pages.
func openPages(manifest []byte) (*page.Pages, error) {
	pages, err := page.New(manifest)
	if len(manifest) == 0 || errors.Is(err, page.ErrManifest) {
		return page.New([]byte(noManifest))
	}
	return pages, err
}
