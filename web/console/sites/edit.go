package sites

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// Ways to edit rules.
const (
	asForm = "form"
	asJSON = "json"
)

// rulesPage is the data of the rules editor.
type rulesPage struct {
	Site     string // name of the site; empty: a new site
	Name     string // name as typed
	Version  uint64 // version of the rules that were loaded
	As       string
	Form     siteForm
	Document string
	Wrong    []misplaced // problems of the document, with their lines
	Rest     invalid.List
	Check    siteCheck
	Choices  []siteRoom
	Lines    []ruleLine
}

// Action returns the target of the form.
func (p rulesPage) Action() string {
	if p.Site == "" {
		return shell.Path + "/new-site"
	}
	return shell.Path + "/sites/" + p.Site + "/rules"
}

// starter is the initial document. It makes no request wait.
const starter = `{
  "version": 1,
  "hosts": [],
  "rooms": {},
  "rules": []
}
`

func (h *handlers) create(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	p := rulesPage{As: asForm, Document: starter}
	if x.QueryParam("as") == asJSON {
		p.As = asJSON
	}
	var err error
	if p.Form, err = h.firstForm(ctx, x); err != nil {
		return err
	}
	if mode := x.QueryParam("mode"); mode == string(rules.SafetyNet) { // mode proposed by a link
		p.Form.Mode = mode
	}
	p.Name = nameOf(p.Form.Hosts)
	return h.rulesPage(ctx, x, http.StatusOK, p)
}

// nameOf proposes a name for a site from its first host, or "".
func nameOf(hosts string) string {
	host, _, _ := strings.Cut(hosts, "\n")
	name, _, _ := strings.Cut(strings.TrimPrefix(host, "www."), ".")
	return format.Slug(name)
}

// firstForm returns the form for the room that the query names, or else for the only room.
func (h *handlers) firstForm(ctx context.Context, x *shell.Request) (siteForm, error) {
	slug := x.QueryParam("room")
	if slug == "" {
		choices, err := h.roomChoices(ctx, x, "")
		if err != nil || len(choices) != 1 {
			return newSiteForm("", nil), err
		}
		slug = choices[0].Slug
	}
	r, err := h.rooms.Room(ctx, x.Actor, slug)
	if errors.Is(err, room.ErrNotFound) {
		return newSiteForm("", nil), nil
	}
	if err != nil {
		return siteForm{}, err
	}
	return newSiteForm(r.URL, r.Config().Targets), nil
}

// edit shows the rules as a form if they fit, or as JSON on request.
func (h *handlers) edit(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	s, err := h.sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := rulesPage{Site: s.Name, Version: s.Version, As: asForm, Document: string(s.Rules)}
	form, ok := siteFormOf(s.Rules)
	if p.Form = form; !ok || x.QueryParam("as") == asJSON {
		p.As = asJSON
	}
	return h.rulesPage(ctx, x, http.StatusOK, p)
}

// rulesPage answers with the rules editor.
func (h *handlers) rulesPage(ctx context.Context, x *shell.Request, status int, p rulesPage) (err error) {
	if p.As == asForm {
		if p.Choices, err = h.roomChoices(ctx, x, p.Form.Room); err != nil {
			return err
		}
	}
	var shown invalid.List
	shown, p.Rest = p.split()
	if p.As == asJSON && len(p.Rest) > 0 {
		p.Wrong, p.Rest = misplace(p.Document, p.Rest), nil
	}
	return x.Render(status, "site-rules", shell.View{Data: p, Problems: shown})
}

// siteFields are the fields of the form.
var siteFields = map[string]bool{
	"": true, "name": true, "hosts": true, "room": true, "scope": true, "paths": true, "exceptions": true,
	"mode": true, "from": true, "until": true, "failure": true, "fail_open_after": true,
}

// split separates problems that are shown at a field from the rest.
func (p *rulesPage) split() (shown, rest invalid.List) {
	for _, problem := range p.Rest {
		if isMeta := problem.Field == "" || problem.Field == "name"; isMeta || p.As == asForm &&
			siteFields[problem.Field] {
			shown = append(shown, problem)
		} else {
			rest = append(rest, problem)
		}
	}
	return shown, rest
}

func (h *handlers) add(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	p := readRules(x)
	p.Name = format.Clean(x.Form("name"))
	return h.write(ctx, x, p, func(document []byte) (string, error) {
		made, err := h.sites.Create(ctx, x.Actor, p.Name, document)
		switch {
		case errors.Is(err, account.ErrExists):
			err = invalid.Field("name", "is taken: your organization has a site with that name")
		case account.IsLimit(err):
			err = invalid.Field("", format.Sentence(err))
		}
		return "/sites/" + made.Name + "/install?done=site-made", err
	})
}

func (h *handlers) change(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	s, err := h.sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := readRules(x)
	p.Site = s.Name
	p.Version, err = strconv.ParseUint(x.Form("version"), 10, 63)
	if err != nil || p.Version == 0 {
		return invalid.Field("version", "must be the version of the rules on the page: load the page again")
	}
	err = h.write(ctx, x, p, func(document []byte) (string, error) {
		_, err := h.sites.Update(ctx, x.Actor, s.Name, p.Version, document)
		return "/sites/" + s.Name + "?done=site-saved", err
	})
	if errors.Is(err, control.ErrChanged) {
		return h.rulesConflict(ctx, x, p)
	}
	return err
}

// readRules reads the editor's form.
func readRules(x *shell.Request) rulesPage {
	p := rulesPage{As: asForm, Form: readSiteForm(x.Request().PostForm), Document: cleanDocument(x.Form("document"))}
	if x.Form("as") == asJSON {
		p.As = asJSON
	}
	p.Check.URLs = format.Clean(x.Form("urls"))
	return p
}

// cleanDocument restores the line ends of a document, which browsers change.
func cleanDocument(text string) string {
	return format.Clean(text) + "\n"
}

// write carries out the action of the button that was used. save stores the rules and returns the next
// page.
func (h *handlers) write(ctx context.Context, x *shell.Request, p rulesPage,
	save func(document []byte) (string, error),
) error {
	d := drafted{text: p.Document}
	var err error
	if p.As == asForm {
		d, err = p.Form.document()
	}
	if err == nil {
		switch x.Form("do") {
		case asJSON:
			p.As, p.Document = asJSON, d.text
		case asForm:
			err = p.turn()
		case "check":
			err = p.look(d.text, x.Now())
		default:
			var next string
			if next, err = save([]byte(d.text)); err == nil {
				return x.Done(next, "")
			}
		}
	}
	wrong, ok := errors.AsType[*invalid.Error](err)
	if err != nil && !ok {
		return err
	}
	if !ok {
		return h.rulesPage(ctx, x, http.StatusOK, p)
	}
	p.Rest = d.place(wrong.Problems)
	return h.rulesPage(ctx, x, http.StatusBadRequest, p)
}

// turn converts the JSON into the form.
func (p *rulesPage) turn() error {
	if _, err := readDocument(p.Document); err != nil {
		return err
	}
	form, ok := siteFormOf([]byte(p.Document))
	if !ok {
		return invalid.Field("", "The form cannot show these rules: continue with the JSON.")
	}
	p.As, p.Form = asForm, form
	return nil
}

// readDocument parses a document. The error is a *[invalid.Error].
func readDocument(document string) (*rules.Site, error) {
	read, err := rules.Parse([]byte(document))
	if wrong, ok := errors.AsType[*rules.InvalidError](err); ok {
		list := &invalid.Error{}
		for _, p := range wrong.Problems {
			p.Field = cmp.Or(p.Field, "rules") // the document as a whole
			list.Problems = append(list.Problems, invalid.Problem(p))
		}
		return nil, list
	}
	return read, err
}

// look describes what a document does, and checks the addresses of the form.
func (p *rulesPage) look(document string, now time.Time) error {
	read, err := readDocument(document)
	if err != nil {
		return err
	}
	p.Lines = ruleLines(read)
	p.Check = newSiteCheck([]byte(document), p.Check.URLs, now)
	return nil
}

// rulesConflict shows the rules that another person has saved in the meantime.
func (h *handlers) rulesConflict(ctx context.Context, x *shell.Request, p rulesPage) error {
	theirs, err := h.sites.Site(ctx, x.Actor, p.Site)
	if err != nil {
		return err
	}
	mine := p.Document
	if p.As == asForm {
		d, err := p.Form.document()
		if err != nil {
			return err
		}
		mine = d.text
	}
	x.Request().PostForm.Set("version", strconv.FormatUint(theirs.Version, 10))
	x.Request().PostForm.Set("do", "save")
	return x.Render(http.StatusConflict, "site-conflict", shell.View{Data: siteConflict{
		Site: theirs, Diff: diffOf(string(theirs.Rules), mine), Action: p.Action(), Fields: x.Fields(),
		Back: shell.Path + "/sites/" + p.Site + "/rules",
	}})
}

// siteConflict compares the form with rules that another person has saved.
type siteConflict struct {
	Site   site.Site
	Diff   []diffLine
	Action string
	Fields []shell.Field
	Back   string
}
