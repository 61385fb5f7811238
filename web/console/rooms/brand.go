package rooms

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/locale"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/page"
)

// brands serves the brand editor and the preview, of rooms and of drafts.
type brands struct {
	control       *control.Rooms
	organizations *account.Organizations      // nil: none
	visitor       func() (*page.Pages, error) // the visitors' pages
}

func newBrands(o Options) *brands {
	return &brands{o.Control, o.Organizations, sync.OnceValues(func() (*page.Pages, error) {
		return openPages(o.Manifest)
	})}
}

func (b *brands) routes() []shell.Route {
	var list []shell.Route
	for _, of := range []string{"/rooms/:slug", "/drafts/:id"} {
		list = append(list,
			shell.Get(of+"/brand", account.Operate, b.show),
			shell.Post(of+"/brand", account.Operate, b.save),
			shell.Post(of+"/brand/check", account.Operate, b.check),
			shell.Get(of+"/preview", account.Read, b.preview),
			shell.Get(of+"/preview/frame", account.Read, b.frame),
			shell.Post(of+"/preview/frame", account.Operate, b.unsaved),
		)
	}
	return list
}

// subject is the room or the draft whose brand a page shows.
type subject struct {
	Path   string // path of its pages
	Slug   string
	Title  string
	Draft  bool
	config room.Config
	now    time.Time
	room   page.Room // the room without its brand
	// inherited is the data URL of the organization's logo, which rooms without a logo show.
	inherited string
	// save stores a brand, or returns [control.ErrChanged] if base is not the tag of the stored one.
	save  func(ctx context.Context, b branding.Brand, base string) error
	saved string // notice shown after saving
}

// subject finds the room or the draft in the path.
func (b *brands) subject(ctx context.Context, x *shell.Request) (subject, error) {
	if x.Param("id") != "" {
		d, err := draftOf(ctx, b.control, x)
		return b.draftSubject(ctx, x, d), err
	}
	r, err := b.control.Room(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return subject{}, err
	}
	s, c := r.Snapshot(), r.Config()
	return subject{
		Path: shell.Path + "/rooms/" + r.Slug, Slug: r.Slug, Title: s.Title, config: c, now: r.Now(),
		saved: "brand-saved",
		room: page.Room{
			Slug: r.Slug, Title: s.Title, Message: messageFor(s.Message(r.Now())), Origin: r.Origin, VKey: r.VKey,
			Organizer: b.organizer(ctx, x), Zone: c.Zone(),
		},
		inherited: b.inherited(ctx, x),
		save: func(ctx context.Context, sent branding.Brand, base string) error {
			_, err := b.control.Amend(ctx, x.Actor, r.Slug,
				room.Amendment{SettingsChange: room.SettingsChange{Brand: &sent}},
				func(c room.Config) bool { return brandTag(c.Brand) == base })
			return err
		},
	}, nil
}

// messageFor returns a message in its default language.
func messageFor(m *room.Message) page.Message {
	if m == nil {
		return page.Message{}
	}
	words, tag := m.For(nil)
	return page.Message{Text: page.Text{Words: words, Lang: page.Lang(tag)}}
}

// organizer returns the organization's name for visitors.
func (b *brands) organizer(ctx context.Context, x *shell.Request) string {
	if b.organizations == nil {
		return ""
	}
	return b.organizations.PublicName(ctx, x.Actor.Org)
}

// inherited returns the data URL of the organization's logo, or "".
func (b *brands) inherited(ctx context.Context, x *shell.Request) string {
	if b.organizations == nil {
		return ""
	}
	logo, err := b.organizations.Logo(ctx, x.Actor.Org)
	if err != nil {
		return "" // the preview shows no logo
	}
	return branding.DataURL(logo.MediaType, logo.Image)
}

// draftSubject returns the subject of a draft.
func (b *brands) draftSubject(ctx context.Context, x *shell.Request, d control.Draft) subject {
	c := d.Config()
	title := cmp.Or(c.Title, c.Slug, "New room")
	return subject{
		Path: shell.Path + "/drafts/" + d.ID.String(), Slug: c.Slug, Title: title, Draft: true, config: c, now: x.Now(),
		saved:     "draft-saved",
		room:      page.Room{Slug: c.Slug, Title: title, Organizer: b.organizer(ctx, x), Zone: c.Zone()},
		inherited: b.inherited(ctx, x),
		save: func(ctx context.Context, sent branding.Brand, base string) error {
			if brandTag(c.Brand) != base {
				return control.ErrChanged
			}
			config, err := withBrand(d.Draft.Config, sent)
			if err == nil {
				_, err = b.control.Drafts.Save(ctx, x.Actor, d.ID, d.Version, d.Host, config)
			}
			return err
		},
	}
}

// withBrand returns a configuration with a different brand. Its other members stay, even malformed ones.
func withBrand(config json.RawMessage, b branding.Brand) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &members); err != nil {
		return nil, fmt.Errorf("read draft: %w", err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("write brand: %w", err)
	}
	members["brand"] = text
	return json.Marshal(members)
}

// brandView is the data of the brand editor.
type brandView struct {
	subject
	Brand     branding.Brand
	Base      string // tag of the brand that the form was made from
	Logos     []logoView
	Languages []languageView
	Fonts     []string
	Corners   []string
	Contrast  []page.Finding
	CSS       []style.Problem
	Preview   previewView
}

// Inherits reports whether the room has no logo and shows the organization's.
func (v brandView) Inherits() bool { return v.inherited != "" && v.Brand.Logo == "" }

// logoView is one of the two logos.
type logoView struct{ Name, Field, Label, URL, About string }

// languageView is a language of the pages, with the room's texts.
type languageView struct {
	Code, Name       string
	Offered, Default bool
	Texts            branding.Texts
}

// Said reports whether the room has texts in the language.
func (l languageView) Said() bool { return l.Texts != branding.Texts{} }

// defaultLanguage returns the language for visitors whose languages are not offered.
func defaultLanguage(b *branding.Brand) string {
	if len(b.Languages) > 0 {
		return b.Languages[0]
	}
	return branding.Languages[0]
}

func newBrandView(of subject, b branding.Brand, base string) brandView {
	v := brandView{
		subject: of, Brand: b, Base: base, Fonts: branding.Fonts, Corners: branding.Corners,
		Logos: []logoView{
			{"logo", "brand.logo", "Logo", b.Logo, aboutLogo(b.Scheme)},
			{"dark_logo", "brand.dark.logo", "Another logo for dark pages", b.Dark.Logo, aboutLogo(b.Dark)},
		},
		Preview: newPreviewView(of, &b, "", "", ""),
	}
	for _, code := range branding.Languages {
		v.Languages = append(v.Languages, languageView{
			code, locale.Name(code), len(b.Languages) == 0 || slices.Contains(b.Languages,
				code), code == defaultLanguage(&b), b.Texts[code],
		})
	}
	v.Contrast, _ = looks.Looks(&b).Contrast() // malformed colours are reported at their fields
	_, v.CSS = style.Parse(b.CSS)
	return v
}

// aboutLogo describes a logo, or returns "".
func aboutLogo(s branding.Scheme) string {
	kind, image, ok := s.Image()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s, %d KiB", strings.ToUpper(strings.TrimPrefix(kind, "image/")), (len(image)+1023)>>10)
}

// brandTag returns a digest of a brand.
func brandTag(b branding.Brand) string {
	text, err := json.Marshal(b)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// show answers with the brand editor.
func (b *brands) show(x *shell.Request) error {
	of, err := b.subject(x.Request().Context(), x)
	if err != nil {
		return err
	}
	return x.Page("room-brand", newBrandView(of, of.config.Brand, brandTag(of.config.Brand)))
}

// save stores the brand, unless another person has changed it since the form was loaded.
func (b *brands) save(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	of, sent, problems, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	base := x.Form("base")
	if len(problems) > 0 {
		return x.Render(http.StatusBadRequest, "room-brand", shell.View{Data: newBrandView(of, sent, base),
			Problems: problems})
	}
	err = of.save(ctx, sent, base)
	if errors.Is(err, control.ErrChanged) {
		now, err := b.subject(ctx, x)
		if err != nil {
			return err
		}
		return x.Render(http.StatusConflict, "room-brand", shell.View{
			Data: newBrandView(now, sent, brandTag(now.config.Brand)),
			Problems: invalid.List{{Detail: "Someone else has changed the brand since you loaded this page. Your changes " +
				"are not saved yet: saving again replaces theirs."}},
		})
	}
	if err != nil {
		return x.Invalid("room-brand", newBrandView(of, sent, base), err)
	}
	return x.Done(strings.TrimPrefix(of.Path, shell.Path)+"/brand", of.saved)
}

// findingJSON is a finding for scripts.
type findingJSON struct {
	Scheme   style.Scheme `json:"scheme"`
	Pair     string       `json:"pair"`
	Where    string       `json:"where"`
	Given    string       `json:"given"`
	Ground   string       `json:"ground"`
	Ratio    float64      `json:"ratio"`
	Required float64      `json:"required"`
	Shown    string       `json:"shown"`
	Then     float64      `json:"then"`
	Repaired bool         `json:"repaired"`
	Good     bool         `json:"good"`
}

// fieldJSON is a problem of a field for scripts.
type fieldJSON struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// check answers with the problems of a brand and the contrast of its colours. It stores nothing.
func (b *brands) check(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	_, sent, problems, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	answer := struct {
		Problems []fieldJSON     `json:"problems"`
		CSS      []style.Problem `json:"css"`
		Contrast []findingJSON   `json:"contrast"`
	}{[]fieldJSON{}, []style.Problem{}, []findingJSON{}}
	for _, p := range problems {
		answer.Problems = append(answer.Problems, fieldJSON{p.Field, p.Detail})
	}
	if _, found := style.Parse(sent.CSS); len(found) > 0 {
		answer.CSS = found
	}
	findings, _ := looks.Looks(&sent).Contrast() // malformed colours are left out
	for _, f := range findings {
		answer.Contrast = append(answer.Contrast, findingJSON{f.Scheme, f.Pair, f.Where, f.Given, f.Ground, f.Ratio,
			f.Required, f.Shown, f.Then, f.Repaired, f.Good()})
	}
	return x.JSON(http.StatusOK, answer)
}

// read reads the form, and lists all problems of the brand.
func (b *brands) read(ctx context.Context, x *shell.Request) (subject, branding.Brand, invalid.List, error) {
	of, err := b.subject(ctx, x)
	if err != nil {
		return of, branding.Brand{}, nil, err
	}
	if err := x.ReadUpload(shell.MaxLogoUpload); err != nil {
		return of, branding.Brand{}, nil, err
	}
	sent := brandIn(x)
	var problems invalid.List
	for _, logo := range []struct {
		name, field string
		into        *string
	}{{"logo", "brand.logo", &sent.Logo}, {"dark_logo", "brand.dark.logo", &sent.Dark.Logo}} {
		url, err := x.Logo(logo.name)
		if err != nil {
			problems.Add(logo.field, "The new image "+err.Error())
			url = x.Form(logo.name) // keep the previous logo
		}
		*logo.into = url
	}
	return of, sent, append(problems, sent.Problems()...), nil
}

// brandIn reads the form, except the logos.
func brandIn(x *shell.Request) branding.Brand {
	b := branding.Brand{
		Scheme: branding.Scheme{Color: x.FormWord("color"), Background: x.FormWord("background")},
		Dark:   branding.Scheme{Color: x.FormWord("dark_color"), Background: x.FormWord("dark_background")},
		Font:   x.FormWord("font"), Corners: x.FormWord("corners"), CSS: x.FormText("css"), Languages: languagesIn(x),
	}
	for _, code := range branding.Languages {
		text := func(name string) string { return x.FormText("text." + code + "." + name) }
		t := branding.Texts{
			Headline: text("headline"), Intro: text("intro"), Help: text("help"), HelpURL: text("help_url"),
			Footer:     text("footer"),
			PrivacyURL: text("privacy_url"), ImprintURL: text("imprint_url"),
		}
		if t == (branding.Texts{}) {
			continue
		}
		if b.Texts == nil {
			b.Texts = map[string]branding.Texts{}
		}
		b.Texts[code] = t
	}
	if b.Font == branding.Fonts[0] {
		b.Font = ""
	}
	if b.Corners == branding.Corners[0] {
		b.Corners = ""
	}
	return b
}

// languagesIn returns the selected languages, the room's own first. nil means all languages in the default order.
func languagesIn(x *shell.Request) []string {
	own, ticked := x.Form("language"), x.Request().PostForm["languages"]
	if own == "" && len(ticked) == 0 {
		return nil
	}
	if own == "" {
		own = ticked[0]
	}
	if len(ticked) == 0 {
		ticked = branding.Languages
	}
	list := append([]string{own}, slices.DeleteFunc(slices.Clone(ticked),
		func(code string) bool { return code == own })...)
	if slices.Equal(list, branding.Languages) {
		return nil
	}
	return list
}

// newNonce returns a nonce for the style of one answer.
func newNonce(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make nonce: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}
