package console

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
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/locale"
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
	var list []route
	for _, of := range []string{"/rooms/:slug", "/drafts/:id"} {
		list = append(list,
			route{GET, of + "/brand", account.Operate, b.show},
			route{POST, of + "/brand", account.Operate, b.save},
			route{POST, of + "/brand/check", account.Operate, b.check},
			route{GET, of + "/preview", account.Read, b.preview},
			route{GET, of + "/preview/frame", account.Read, b.frame},
			route{POST, of + "/preview/frame", account.Operate, b.unsaved},
		)
	}
	return list
}

// subject is whose looks a page is about: a room, or a draft of one.
type subject struct {
	Path   string // of its pages
	Slug   string
	Title  string
	Draft  bool
	config room.Config
	now    time.Time
	room   page.Room // but what the brand says
	// inherited is the logo of the organization, as a data URL: the room's without one of its own.
	inherited string
	// save stores a brand unless another than that of the tag is there;
	// [control.ErrChanged].
	save  func(ctx context.Context, b room.Brand, base string) error
	saved string // the notice
}

// subject finds the room or the draft that the path names.
func (b *brands) subject(ctx context.Context, x *request) (subject, error) {
	if x.Param("id") != "" {
		d, err := b.draft(ctx, x)
		return b.draftSubject(ctx, x, d), err
	}
	r, err := b.Control.Room(ctx, x.Actor, x.Param("slug"))
	if err != nil {
		return subject{}, err
	}
	s, c := r.Snapshot(), r.Config()
	return subject{
		Path: Path + "/rooms/" + r.Slug, Slug: r.Slug, Title: s.Title, config: c, now: r.Now(), saved: "brand-saved",
		room: page.Room{
			Slug: r.Slug, Title: s.Title, Message: messageFor(s.Message(r.Now())), Origin: r.Origin, VKey: r.VKey, Organizer: b.organizer(ctx, x), Zone: c.Zone(),
		},
		inherited: b.inherited(ctx, x),
		save: func(ctx context.Context, sent room.Brand, base string) error {
			_, err := b.Control.Amend(ctx, x.Actor, r.Slug, room.Amendment{SettingsChange: room.SettingsChange{Brand: &sent}},
				func(c room.Config) bool { return brandTag(c.Brand) == base })
			return err
		},
	}, nil
}

// messageFor is a message for a visitor who reads its default language.
func messageFor(m *room.Message) page.Message {
	if m == nil {
		return page.Message{}
	}
	words, tag := m.For(nil)
	return page.Message{Text: page.Text{Words: words, Lang: page.Lang(tag)}}
}

// organizer is the name that visitors are shown.
func (b *brands) organizer(ctx context.Context, x *request) string {
	if b.Accounts == nil {
		return ""
	}
	return b.Accounts.Organizations.PublicName(ctx, x.Actor.Org)
}

// inherited is the organization's logo as a data URL, empty for none.
func (b *brands) inherited(ctx context.Context, x *request) string {
	if b.Accounts == nil {
		return ""
	}
	logo, err := b.Accounts.Organizations.Logo(ctx, x.Actor.Org)
	if err != nil {
		return "" // the preview does without
	}
	return room.DataURL(logo.MediaType, logo.Image)
}

// draftSubject is the same of a draft, which is not published.
func (b *brands) draftSubject(ctx context.Context, x *request, d control.Draft) subject {
	c := d.Config()
	title := cmp.Or(c.Title, c.Slug, "New room")
	return subject{
		Path: Path + "/drafts/" + d.ID.String(), Slug: c.Slug, Title: title, Draft: true, config: c, now: b.Now(), saved: "draft-saved",
		room:      page.Room{Slug: c.Slug, Title: title, Organizer: b.organizer(ctx, x), Zone: c.Zone()},
		inherited: b.inherited(ctx, x),
		save: func(ctx context.Context, sent room.Brand, base string) error {
			if brandTag(c.Brand) != base {
				return control.ErrChanged
			}
			config, err := withBrand(d.Draft.Config, sent)
			if err == nil {
				_, err = b.Control.SaveDraft(ctx, x.Actor, d.ID, d.Version, d.Host, config)
			}
			return err
		},
	}
}

// withBrand returns a configuration with another brand. What else it says is
// left as it is, even if it cannot be read.
func withBrand(config json.RawMessage, b room.Brand) (json.RawMessage, error) {
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

// brandView is what the form of a brand shows.
type brandView struct {
	subject
	Brand     room.Brand
	Base      string // tag of the brand that is changed
	Logos     []logoView
	Languages []languageView
	Fonts     []string
	Corners   []string
	Contrast  []page.Finding
	CSS       []style.Problem
	Preview   previewView
}

// Inherits reports whether the room shows the organization's logo, having none.
func (v brandView) Inherits() bool { return v.inherited != "" && v.Brand.Logo == "" }

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

func newBrandView(of subject, b room.Brand, base string) brandView {
	v := brandView{
		subject: of, Brand: b, Base: base, Fonts: room.Fonts, Corners: room.Corners,
		Logos: []logoView{
			{"logo", "brand.logo", "Logo", b.Logo, aboutLogo(b.Scheme)},
			{"dark_logo", "brand.dark.logo", "Another logo for dark pages", b.Dark.Logo, aboutLogo(b.Dark)},
		},
		Preview: newPreviewView(of, &b, "", "", ""),
	}
	for _, code := range room.Languages {
		v.Languages = append(v.Languages, languageView{
			code, locale.Name(code), len(b.Languages) == 0 || slices.Contains(b.Languages, code), code == defaultLanguage(&b), b.Texts[code],
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
	of, err := b.subject(x.Request().Context(), x)
	if err != nil {
		return err
	}
	return x.page("room-brand", newBrandView(of, of.config.Brand, brandTag(of.config.Brand)))
}

// save keeps what was sent, unless somebody else has changed the brand since
// the form was loaded.
func (b *brands) save(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	of, sent, problems, err := b.read(ctx, x)
	if err != nil {
		return err
	}
	base := x.form("base")
	if len(problems) > 0 {
		return x.render(http.StatusBadRequest, "room-brand", view{Data: newBrandView(of, sent, base), Problems: problems})
	}
	err = of.save(ctx, sent, base)
	if errors.Is(err, control.ErrChanged) {
		now, err := b.subject(ctx, x)
		if err != nil {
			return err
		}
		return x.render(http.StatusConflict, "room-brand", view{
			Data:     newBrandView(now, sent, brandTag(now.config.Brand)),
			Problems: invalid.List{{Detail: "Somebody else has changed the brand since you loaded this page. Nothing is saved yet: saving again puts what you see here in the place of theirs."}},
		})
	}
	if err != nil {
		return x.invalid("room-brand", newBrandView(of, sent, base), err)
	}
	return x.done(strings.TrimPrefix(of.Path, Path)+"/brand", of.saved)
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
func (b *brands) read(ctx context.Context, x *request) (subject, room.Brand, invalid.List, error) {
	of, err := b.subject(ctx, x)
	if err != nil {
		return of, room.Brand{}, nil, err
	}
	if err := x.readUpload(); err != nil {
		return of, room.Brand{}, nil, err
	}
	sent := x.brand()
	var problems invalid.List
	for _, logo := range []struct {
		name, field string
		into        *string
	}{{"logo", "brand.logo", &sent.Logo}, {"dark_logo", "brand.dark.logo", &sent.Dark.Logo}} {
		url, err := x.logo(logo.name)
		if err != nil {
			problems.Add(logo.field, "The new image "+err.Error())
			url = x.form(logo.name) // what there was stays
		}
		*logo.into = url
	}
	return of, sent, append(problems, sent.Problems()...), nil
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
		return invalid.Field("", "must be a form")
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
