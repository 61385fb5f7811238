package console

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// previewView is what is chosen of a preview.
type previewView struct {
	Slug, Title         string
	State, Lang, Scheme string
	States              []page.Example
	Languages           []languageView
}

// newPreviewView chooses what is there: the first of all states, the room's
// own language, a light page.
func newPreviewView(slug string, b *room.Brand, state, lang, scheme string) previewView {
	v := previewView{
		Slug: slug, State: page.PreviewOf(page.Sample{}, state).Name, States: page.Previews(page.Sample{}),
		Lang: string(page.Match("", lang, looks.Languages(b)...)), Scheme: string(style.Light),
	}
	if scheme == string(style.Dark) {
		v.Scheme = scheme
	}
	for _, code := range room.Languages {
		v.Languages = append(v.Languages, languageView{Code: code, Name: languageNames[code]})
	}
	return v
}

// preview answers with the page that shows what visitors see.
func (b *brands) preview(x *request) error {
	r, err := b.Desk.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	v := newPreviewView(r.Slug, &settings.Brand, x.QueryParam("state"), x.QueryParam("lang"), x.QueryParam("scheme"))
	v.Title = r.Snapshot().Title
	return x.page("room-preview", v)
}

// frame answers with the page as a visitor sees it, with sample figures.
func (b *brands) frame(x *request) error {
	r, err := b.Desk.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	return b.picture(x, r, settings.Brand, x.QueryParam)
}

// unsaved is frame with a brand that is not stored. What is wrong with it is
// left out.
func (b *brands) unsaved(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	r, sent, _, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	return b.picture(x, r, sent, x.form)
}

// framePolicy is what a preview may load: it has its own style in it, by a
// nonce, and its logo. It runs no script, sends no form, and only pages of ours
// may show it.
const framePolicy = "default-src 'none'; style-src 'self' 'nonce-%s'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// picture answers with one state of a visitor's page in a brand.
func (b *brands) picture(x *request, r *room.Room, of room.Brand, chosen func(string) string) error {
	pages, err := b.visitor()
	if err != nil {
		return err
	}
	nonce, err := newNonce(rand.Reader)
	if err != nil {
		return err
	}
	v := newPreviewView(r.Slug, &of, chosen("state"), chosen("lang"), chosen("scheme"))
	in := page.Inline{Nonce: nonce, CSS: cssIn(&of, style.Scheme(v.Scheme)), Logo: of.Logo}
	if v.Scheme == string(style.Dark) && of.Dark.Logo != "" {
		in.Logo = of.Dark.Logo
	}
	var body bytes.Buffer
	if err := pages.Preview(&body, page.PreviewOf(sampleOf(r, &of, page.Lang(v.Lang)), v.State).View, in); err != nil {
		return fmt.Errorf("preview %s: %w", r.Slug, err)
	}
	x.Response().Header().Set("Content-Security-Policy", fmt.Sprintf(framePolicy, nonce))
	return x.HTMLBlob(http.StatusOK, body.Bytes())
}

// cssIn is the stylesheet of a brand; without its colours when they cannot be
// read, as while somebody types.
func cssIn(b *room.Brand, scheme style.Scheme) []byte {
	look := looks.Looks(b)
	css, err := look.In(scheme)
	if errors.Is(err, page.ErrColor) {
		look.Colors, look.Dark = page.Colors{}, page.Colors{}
		css, _ = look.In(scheme) // nothing is left that could fail
	}
	return css
}

// sampleOf is what previews of a room are made of.
func sampleOf(r *room.Room, b *room.Brand, lang page.Lang) page.Sample {
	s := r.Snapshot()
	settings, _ := r.Settings()
	sample := page.Sample{
		Room: page.Room{
			Slug: r.Slug, Title: s.Title, Message: s.Message, Origin: r.Origin, VKey: r.VKey,
			Offered: looks.Languages(b), Texts: looks.Texts(b, lang),
		},
		Lang: lang, Now: r.Now(), Claim: time.Duration(r.Policy().Claim) * time.Millisecond,
	}
	if u, ok := settings.Target(""); ok {
		sample.Target = u.Scheme + "://" + u.Host
	}
	return sample
}

// noManifest is in place of the manifest when there are no built files: then
// previews have no style but the organizer's.
const noManifest = `{"page.js": "page.js", "checker.js": "checker.js", "page.css": "page.css", "icon.svg": "icon.svg"}`

// openPages prepares the visitor's pages.
func openPages(manifest []byte) (*page.Pages, error) {
	pages, err := page.New(manifest)
	if len(manifest) == 0 || errors.Is(err, page.ErrManifest) {
		return page.New([]byte(noManifest))
	}
	return pages, err
}
