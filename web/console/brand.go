package console

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/page"
)

// maxUpload is how much a form of a brand may have: two new logos, two that
// are kept, texts and CSS.
const maxUpload = 768 << 10 // bytes

// brands are the pages about the looks of a room.
type brands struct {
	*Console
	visitor func() (*page.Pages, error) // the pages that visitors see
}

// brandRoutes are the looks of a room, and how visitors see it.
func (c *Console) brandRoutes() []route {
	b := &brands{c, sync.OnceValues(func() (*page.Pages, error) { return openPages(c.Manifest) })}
	return []route{
		{GET, "/rooms/:slug/brand", account.Operate, b.show},
		{POST, "/rooms/:slug/brand", account.Operate, b.save},
		{POST, "/rooms/:slug/brand/check", account.Operate, b.check},
		{GET, "/rooms/:slug/preview", account.Read, b.preview},
		{GET, "/rooms/:slug/preview/frame", account.Read, b.frame},
		{POST, "/rooms/:slug/preview/frame", account.Operate, b.unsaved},
	}
}

// languageNames are the languages of the pages as an organizer reads them.
var languageNames = map[string]string{
	"en": "English", "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "pt": "Portuguese", "ja": "Japanese", "ar": "Arabic",
}

// brandView is what the form of a brand shows.
type brandView struct {
	Slug, Title string
	Brand       room.Brand
	Base        string // tag of the brand that is changed
	Logos       []logoView
	Languages   []languageView
	Fonts       []string
	Corners     []string
	Contrast    []page.Finding
	CSS         []style.Problem
	Preview     previewView
}

// logoView is one of the two logos.
type logoView struct{ Name, Field, Label, URL, About string }

// languageView is a language of the pages, and what the room says in it.
type languageView struct {
	Code, Name       string
	Offered, Default bool
	Texts            room.Texts
}

// Said tells whether there are texts in the language.
func (l languageView) Said() bool { return l.Texts != room.Texts{} }

// Default is the language that the room has when a visitor's is not offered.
func defaultLanguage(b *room.Brand) string {
	if len(b.Languages) > 0 {
		return b.Languages[0]
	}
	return room.Languages[0]
}

func newBrandView(r *room.Room, b room.Brand, base string) brandView {
	v := brandView{
		Slug: r.Slug, Title: r.Snapshot().Title, Brand: b, Base: base, Fonts: room.Fonts, Corners: room.Corners,
		Logos: []logoView{
			{"logo", "brand.logo", "Logo", b.Logo, aboutLogo(b.Scheme)},
			{"dark_logo", "brand.dark.logo", "Another logo for dark pages", b.Dark.Logo, aboutLogo(b.Dark)},
		},
		Preview: newPreviewView(r.Slug, &b, "", "", ""),
	}
	for _, code := range room.Languages {
		v.Languages = append(v.Languages, languageView{
			code, languageNames[code], len(b.Languages) == 0 || slices.Contains(b.Languages, code), code == defaultLanguage(&b), b.Texts[code],
		})
	}
	v.Contrast, _ = looks.Looks(&b).Contrast() // colours that cannot be read are said at their fields
	_, v.CSS = style.Parse(b.CSS)
	return v
}

// aboutLogo says what image there is, empty for none.
func aboutLogo(s room.Scheme) string {
	kind, image, ok := s.Image()
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s, %d KiB", strings.ToUpper(strings.TrimPrefix(kind, "image/")), (len(image)+1023)>>10)
}

// brandTag is the same for brands that are the same.
func brandTag(b room.Brand) string {
	text, err := json.Marshal(b)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// show answers with the form.
func (b *brands) show(x *request) error {
	r, err := b.Desk.Room(x.Request().Context(), x.Actor, x.Param("slug"))
	if err != nil {
		return err
	}
	settings, _ := r.Settings()
	return x.page("room-brand", newBrandView(r, settings.Brand, brandTag(settings.Brand)))
}

// save keeps what was sent, unless somebody else has changed the brand since
// the form was loaded.
func (b *brands) save(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	r, sent, problems, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return x.render(http.StatusBadRequest, "room-brand", view{Data: newBrandView(r, sent, x.form("base")), Problems: problems})
	}
	base := x.form("base")
	_, err = b.Desk.Amend(ctx, x.Actor, r.Slug, room.Amendment{SettingsChange: room.SettingsChange{Brand: &sent}},
		func(c room.Config) bool { return brandTag(c.Brand) == base })
	if errors.Is(err, desk.ErrChanged) {
		settings, _ := r.Settings()
		return x.render(http.StatusConflict, "room-brand", view{
			Data:     newBrandView(r, sent, brandTag(settings.Brand)),
			Problems: []fairness.Problem{{Detail: "Somebody else has changed the brand since you loaded this page. Nothing is saved yet: saving again puts what you see here in the place of theirs."}},
		})
	}
	if err != nil {
		return x.invalid("room-brand", newBrandView(r, sent, base), err)
	}
	return x.done("/rooms/"+r.Slug+"/brand", "brand-saved")
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

// fieldJSON is what is wrong with a field, for scripts.
type fieldJSON struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// check says what is wrong with a brand, and what becomes of its colours.
// Nothing is stored.
func (b *brands) check(x *request) error {
	ctx, cancel := x.wait()
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
	findings, _ := looks.Looks(&sent).Contrast() // of colours that can be read
	for _, f := range findings {
		answer.Contrast = append(answer.Contrast, findingJSON{f.Scheme, f.Pair, f.Where, f.Given, f.Ground, f.Ratio, f.Required, f.Shown, f.Then, f.Repaired, f.Good()})
	}
	return x.JSON(http.StatusOK, answer)
}

// read reads a brand out of a form, and lists everything wrong with it.
func (b *brands) read(ctx context.Context, x *request) (*room.Room, room.Brand, []fairness.Problem, error) {
	r, err := b.Desk.Room(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return nil, room.Brand{}, nil, err
	}
	if err := x.readUpload(); err != nil {
		return nil, room.Brand{}, nil, err
	}
	sent := x.brand()
	var problems []fairness.Problem
	for _, logo := range []struct {
		name, field string
		into        *string
	}{{"logo", "brand.logo", &sent.Logo}, {"dark_logo", "brand.dark.logo", &sent.Dark.Logo}} {
		url, err := x.logo(logo.name)
		if err != nil {
			problems = append(problems, fairness.Problem{Field: logo.field, Detail: "The new image " + err.Error()})
			url = x.form(logo.name) // what there was stays
		}
		*logo.into = url
	}
	return r, sent, append(problems, sent.Problems()...), nil
}

// readUpload reads a form with files.
func (x *request) readUpload() error {
	q := x.Request()
	if !strings.HasPrefix(q.Header.Get("Content-Type"), "multipart/") {
		return nil // it is read
	}
	q.Body = http.MaxBytesReader(x.Response(), q.Body, maxUpload)
	err := q.ParseMultipartForm(maxUpload)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || errors.Is(err, multipart.ErrMessageTooLarge) {
		return ErrTooLarge
	}
	if err != nil {
		return &room.InvalidError{Problems: []fairness.Problem{{Detail: "must be a form"}}}
	}
	return nil
}

// brand reads what is typed and chosen, but the logos.
func (x *request) brand() room.Brand {
	b := room.Brand{
		Scheme: room.Scheme{Color: x.word("color"), Background: x.word("background")},
		Dark:   room.Scheme{Color: x.word("dark_color"), Background: x.word("dark_background")},
		Font:   x.word("font"), Corners: x.word("corners"), CSS: x.lines("css"), Languages: x.languages(),
	}
	for _, code := range room.Languages {
		text := func(name string) string { return x.lines("text." + code + "." + name) }
		t := room.Texts{
			Headline: text("headline"), Intro: text("intro"), Help: text("help"), HelpURL: text("help_url"), Footer: text("footer"),
			PrivacyURL: text("privacy_url"), ImprintURL: text("imprint_url"),
		}
		if t == (room.Texts{}) {
			continue
		}
		if b.Texts == nil {
			b.Texts = map[string]room.Texts{}
		}
		b.Texts[code] = t
	}
	if b.Font == room.Fonts[0] {
		b.Font = ""
	}
	if b.Corners == room.Corners[0] {
		b.Corners = ""
	}
	return b
}

func (x *request) word(name string) string { return strings.TrimSpace(x.form(name)) }

// lines is a text of several lines, which forms send with carriage returns.
func (x *request) lines(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(x.form(name), "\r\n", "\n"))
}

// languages are those that are ticked, the room's own first; none for all in
// our order.
func (x *request) languages() []string {
	own, ticked := x.form("language"), x.Request().PostForm["languages"]
	if own == "" && len(ticked) == 0 {
		return nil
	}
	if own == "" {
		own = ticked[0]
	}
	if len(ticked) == 0 {
		ticked = room.Languages
	}
	list := append([]string{own}, slices.DeleteFunc(slices.Clone(ticked), func(code string) bool { return code == own })...)
	if slices.Equal(list, room.Languages) {
		return nil
	}
	return list
}

// logo is a new image, or the one that the form came with unless it is to be
// taken away.
func (x *request) logo(name string) (string, error) {
	if x.Request().MultipartForm != nil {
		for _, header := range x.Request().MultipartForm.File[name+"_file"] {
			if header.Size == 0 {
				continue // nothing was chosen
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
			return room.ReadLogo(content)
		}
	}
	if x.form(name+"_remove") != "" {
		return "", nil
	}
	return x.form(name), nil
}

// newNonce is what allows one style in one answer.
func newNonce(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("make nonce: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}
