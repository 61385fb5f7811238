package console

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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

//go:embed templates
var files embed.FS

// templates are the pages, each with the frame and all partials.
type templates map[string]*template.Template

// parseTemplates reads all pages. Assets are the names of the built files by
// their plain names.
func parseTemplates(assets map[string]string) (templates, error) {
	all, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	shared := template.New("").Funcs(functions(assets))
	var pages []string
	for _, name := range all {
		base := path.Base(name)
		if base != "frame.html" && !strings.HasPrefix(base, "part-") {
			pages = append(pages, name)
			continue
		}
		if shared, err = shared.ParseFS(files, name); err != nil {
			return nil, fmt.Errorf("parse template: %w", err)
		}
	}
	set := templates{}
	for _, name := range pages {
		own, err := shared.Clone()
		if err == nil {
			own, err = own.ParseFS(files, name)
		}
		if err != nil {
			return nil, fmt.Errorf("parse template: %w", err)
		}
		set[strings.TrimSuffix(path.Base(name), ".html")] = own
	}
	return set, nil
}

// view is what a template gets.
type view struct {
	Identity Identity
	Path     string             // of the request, to mark where one is
	Notice   string             // of what was done just now, empty for none
	Problems []fairness.Problem // of the form that was sent
	Held     *heldRoom          // the room of the page, while its entry is stopped
	Beacon   string             // what is wrong with the beacon, empty for nothing
	Version  string
	Now      time.Time
	Data     any
}

// SignedIn tells whether somebody is.
func (v view) SignedIn() bool { return v.Identity.Actor.Kind != 0 }

// page answers with a page.
func (x *request) page(name string, data any) error {
	return x.render(http.StatusOK, name, view{Data: data})
}

// invalid answers with a page again, when err says what is wrong with what was
// sent; any other error is returned.
func (x *request) invalid(name string, data any, err error) error {
	wrong := (*room.InvalidError)(nil)
	if !errors.As(err, &wrong) {
		return err
	}
	return x.render(http.StatusBadRequest, name, view{Data: data, Problems: wrong.Problems})
}

// render answers with a page, whole or not at all. Pages are not compressed:
// they show secrets once, beside what others may have written.
func (x *request) render(status int, name string, v view) error {
	t, ok := x.console.templates[name]
	if !ok {
		return fmt.Errorf("no template %s", name)
	}
	v.Identity, v.Path, v.Version, v.Now = x.Identity, x.Request().URL.Path, x.console.Version, x.console.Now()
	v.Notice = notices[x.QueryParam("done")]
	if v.SignedIn() {
		if slices.Contains(beaconPages, name) {
			v.Beacon = x.console.beaconTrouble()
		}
		v.Held = x.heldRoom()
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "frame.html", v); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	return x.HTMLBlob(status, x.inOrganization(b.Bytes()))
}

// heldRoom is a room whose entry is stopped.
type heldRoom struct{ Slug, Title string }

// heldRoom returns the room that the page is about if its entry is stopped, else
// nil.
func (x *request) heldRoom() *heldRoom {
	slug := x.Param("slug")
	if x.Path() == Path+"/acts" {
		slug = x.QueryParam("object")
	}
	if slug == "" || x.console.Desk == nil || !x.Actor.May(account.Read) {
		return nil
	}
	ctx, cancel := x.wait()
	defer cancel()
	r, err := x.console.Desk.Room(ctx, x.Actor, slug)
	if err != nil || !r.Snapshot().Held {
		return nil
	}
	return &heldRoom{r.Slug, r.Snapshot().Title}
}

// organizationField is the field of every form that says which organization the
// page was of.
const organizationField = "in_organization"

// postForm is the tag that begins a form. What people wrote cannot be one: the
// templates escape it.
var postForm = regexp.MustCompile(`<form [^>]*method="post"[^>]*>`)

// inOrganization has every form of a page say which organization the page was
// of: in another tab the person may have switched to another since.
func (x *request) inOrganization(page []byte) []byte {
	if x.Organization.Slug == "" {
		return page
	}
	field := `<input type="hidden" name="` + organizationField + `" value="` + template.HTMLEscapeString(x.Organization.Slug) + `">`
	return postForm.ReplaceAllFunc(page, func(tag []byte) []byte { return append(bytes.Clone(tag), field...) })
}

// done answers with a redirect to a page below [Path], which shows a notice.
func (x *request) done(path, notice string) error {
	if notice != "" {
		if _, ok := notices[notice]; !ok {
			return fmt.Errorf("no notice %s", notice)
		}
		path += "?done=" + notice
	}
	return x.Redirect(http.StatusSeeOther, Path+path)
}

// functions are what templates may call.
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
		"has":     func(v view, field string) bool { return problem(v, field) != "" },
		"may": func(v view, scope string) bool {
			s, err := account.ParseScope(scope)
			return err == nil && v.Identity.Actor.May(s)
		},
		"number":    number,
		"when":      when,
		"duration":  duration,
		"below":     func(v view, prefix string) bool { return v.Path == prefix || strings.HasPrefix(v.Path, prefix+"/") },
		"join":      strings.Join,
		"fieldName": fieldName,
		"hasPrefix": strings.HasPrefix,
		"moment":    momentField,
		"step":      momentStep,
		"inc":       func(n int) int { return n + 1 },
		"decimal":   decimal,
		"percent":   percent,
		"bytesize":  bytesize,
		"span":      span,
		"turn":      turn,
		"shown":     shown,

		"stateBadge":  stateBadge,
		"windowState": windowState,
		"ahead":       ahead,
		"until":       until,
		"emptied":     emptied,
		"verdict":     rehearsalVerdict,
	}
}

// dict makes a map of its arguments, for partials.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict: a key without a value")
	}
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: key %v is no text", pairs[i])
		}
		m[key] = pairs[i+1]
	}
	return m, nil
}

// problem returns what is wrong with a field, or below it; "" for nothing, and
// for the field "" what is wrong with the form as a whole.
func problem(v view, field string) string {
	var found []string
	for _, p := range v.Problems {
		if p.Field == field || field != "" && (strings.HasPrefix(p.Field, field+".") || strings.HasPrefix(p.Field, field+"[")) {
			found = append(found, p.Detail)
		}
	}
	return strings.Join(found, "; ")
}

// number writes a whole number with thin groups of three: 1,234,567.
func number(n any) string {
	text := fmt.Sprint(n)
	digits := strings.TrimPrefix(text, "-")
	if _, err := strconv.ParseUint(digits, 10, 64); err != nil {
		return text
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return strings.TrimSuffix(text, digits) + b.String()
}

// duration writes a duration in the largest units: 1 h 30 min.
func duration(d any) string {
	var t time.Duration
	switch d := d.(type) {
	case time.Duration:
		t = d
	case room.Duration:
		t = time.Duration(d)
	case *room.Duration:
		if d == nil {
			return ""
		}
		t = time.Duration(*d)
	}
	if t == 0 {
		return "0 s"
	}
	var parts []string
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := t / u.unit; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
			t -= n * u.unit
		}
	}
	return strings.Join(parts, " ")
}
