package shell

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/format"
)

//go:embed templates
var files embed.FS

// templates are the pages by name, each with the frame and all partials.
type templates map[string]*template.Template

// parseTemplates reads the templates of the shell and of all parts. assets maps the plain names of
// built files to their names with hashes.
func parseTemplates(assets map[string]string, parts []Part) (templates, error) {
	shared := template.New("").Funcs(functions(assets))
	sources := []fs.FS{Templates(files)}
	for _, part := range parts {
		shared.Funcs(part.Functions)
		if part.Templates != nil {
			sources = append(sources, part.Templates)
		}
	}
	for _, source := range sources {
		if err := parsePartials(shared, source); err != nil {
			return nil, err
		}
	}
	set := templates{}
	for _, source := range sources {
		if err := set.parsePages(shared, source); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// isPartial reports whether a template file is a part of pages, not a page itself.
func isPartial(name string) bool { return name == "frame.html" || strings.HasPrefix(name, "part-") }

// parsePartials adds the partials of one source to the templates that all pages share.
func parsePartials(shared *template.Template, source fs.FS) error {
	all, err := fs.Glob(source, "*.html")
	if err != nil {
		return fmt.Errorf("list templates: %w", err)
	}
	for _, name := range all {
		if !isPartial(name) {
			continue
		}
		if _, err := shared.ParseFS(source, name); err != nil {
			return fmt.Errorf("parse template: %w", err)
		}
	}
	return nil
}

// parsePages adds the pages of one source.
func (set templates) parsePages(shared *template.Template, source fs.FS) error {
	all, err := fs.Glob(source, "*.html")
	if err != nil {
		return fmt.Errorf("list templates: %w", err)
	}
	for _, name := range all {
		if isPartial(name) {
			continue
		}
		page := strings.TrimSuffix(path.Base(name), ".html")
		if set[page] != nil {
			return fmt.Errorf("template %s exists twice", name)
		}
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(source, name)
		}
		if err != nil {
			return fmt.Errorf("parse template: %w", err)
		}
		set[page] = own
	}
	return nil
}

// View is the data of a template. Handlers set Problems, Beacon and Data; the shell sets the rest.
type View struct {
	Identity Identity
	Path     string       // path of the request
	Notice   string       // notice about the latest action, or ""
	Problems invalid.List // problems of the form that was sent
	Frozen   *frozenRoom  // the page's room while its claims are frozen
	Beacon   string       // warning about the public randomness, or ""
	Version  string
	Now      time.Time
	Data     any
}

// SignedIn reports whether the page is shown to a signed-in person.
func (v View) SignedIn() bool { return v.Identity.SignedIn() }

// Page answers with a page.
func (x *Request) Page(name string, data any) error {
	return x.Render(http.StatusOK, name, View{Data: data})
}

// Invalid answers with the page of a form again if err describes invalid input. Other errors are
// returned.
func (x *Request) Invalid(name string, data any, err error) error {
	wrong := (*invalid.Error)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	return x.Render(http.StatusBadRequest, name, View{Data: data, Problems: wrong.Problems})
}

// Render answers with a complete page, or returns an error. Pages are not compressed: they show
// secrets once, next to text that other people wrote.
func (x *Request) Render(status int, name string, v View) error {
	v.Notice = x.shell.notices[x.QueryParam("done")]
	if x.SignedIn() {
		v.Frozen = x.frozenRoom()
	}
	page, err := x.execute(name, "frame.html", v)
	if err != nil {
		return err
	}
	return x.HTMLBlob(status, x.inOrganization(page))
}

// RenderPart answers with one part of a page, without the frame.
func (x *Request) RenderPart(status int, page, part string, v View) error {
	text, err := x.execute(page, part, v)
	if err != nil {
		return err
	}
	return x.HTMLBlob(status, text)
}

// execute runs one template of a page.
func (x *Request) execute(page, name string, v View) ([]byte, error) {
	t, ok := x.shell.templates[page]
	if !ok {
		return nil, fmt.Errorf("no template %s", page)
	}
	v.Identity, v.Path, v.Version, v.Now = x.Identity, x.Request().URL.Path, x.shell.options.Version, x.Now()
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, name, v); err != nil {
		return nil, fmt.Errorf("render %s of %s: %w", name, page, err)
	}
	return b.Bytes(), nil
}

// frozenRoom is a room whose claims are frozen.
type frozenRoom struct{ Slug, Title string }

// frozenRoom returns the room of the page if its claims are frozen, or nil.
func (x *Request) frozenRoom() *frozenRoom {
	slug := x.Param("slug")
	if x.Path() == Path+"/activity" {
		slug = x.QueryParam("object")
	}
	if slug == "" || x.shell.options.Rooms == nil || !x.Actor.May(account.Read) {
		return nil
	}
	ctx, cancel := x.Wait()
	defer cancel()
	r, err := x.shell.options.Rooms.Room(ctx, x.Actor, slug)
	if err != nil || !r.Snapshot().ClaimsFrozen {
		return nil
	}
	return &frozenRoom{r.Slug, r.Snapshot().Title}
}

// organizationField is the form field with the organization of the page.
const organizationField = "in_organization"

// postForm matches the tag that opens a form. Text that people wrote cannot match, because
// templates escape it.
var postForm = regexp.MustCompile(`<form [^>]*method="post"[^>]*>`)

// inOrganization adds the organization of the page to all its forms, because the person may switch to another
// organization in another tab.
func (x *Request) inOrganization(page []byte) []byte {
	if x.Organization.Slug == "" {
		return page
	}
	field := `<input type="hidden" name="` + organizationField + `" value="` +
		template.HTMLEscapeString(x.Organization.Slug) + `">`
	return postForm.ReplaceAllFunc(page, func(tag []byte) []byte { return append(bytes.Clone(tag), field...) })
}

// Done redirects to a page below [Path] that shows a notice; "" is no notice.
func (x *Request) Done(path, notice string) error {
	if notice != "" {
		if _, ok := x.shell.notices[notice]; !ok {
			return fmt.Errorf("no notice %s", notice)
		}
		path += "?done=" + notice
	}
	return x.Redirect(http.StatusSeeOther, Path+path)
}

// functions are the functions of all templates.
func functions(assets map[string]string) template.FuncMap {
	return template.FuncMap{
		"asset": func(name string) string {
			if built, ok := assets[name]; ok {
				name = built
			}
			return "/assets/" + name
		},
		"dict":    dict,
		"problem": problem,
		"has":     func(v View, field string) bool { return problem(v, field) != "" },
		"may": func(v View, scope string) bool {
			s, err := account.ParseScope(scope)
			return err == nil && v.Identity.Actor.May(s)
		},
		"below": func(v View, prefix string) bool {
			return v.Path == prefix || strings.HasPrefix(v.Path, prefix+"/")
		},
		"join":      strings.Join,
		"hasPrefix": strings.HasPrefix,
		"inc":       func(n int) int { return n + 1 },
		"shown":     shown,

		"number":     format.Number,
		"when":       format.When,
		"duration":   format.Duration,
		"moment":     format.MomentField,
		"step":       format.MomentStep,
		"decimal":    format.Decimal,
		"percent":    format.Percent,
		"bytesize":   format.Bytes,
		"span":       format.Span,
		"stateBadge": format.Phase,
	}
}

// dict returns a map of its arguments, for partials.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict: a key without a value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is not a string", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// problem returns the problems of a field and of its members, or "". Field "" is the form as a whole.
func problem(v View, field string) string {
	var found []string
	for _, p := range v.Problems {
		isMember := strings.HasPrefix(p.Field, field+".") || strings.HasPrefix(p.Field, field+"[")
		if p.Field == field || field != "" && isMember {
			found = append(found, p.Detail)
		}
	}
	return strings.Join(found, "; ")
}

// Templates returns the folder "templates" of a package's embedded files.
func Templates(files embed.FS) fs.FS {
	sub, err := fs.Sub(files, "templates")
	if err != nil {
		panic(err) // the name is valid
	}
	return sub
}
