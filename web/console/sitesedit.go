package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// Ways to write rules.
const (
	asForm = "form"
	asJSON = "json"
)

// rulesPage is what the page for writing rules shows.
type rulesPage struct {
	Site     string // empty: a new one
	Name     string // as it was typed
	Version  uint64 // of the rules that this began with
	As       string
	Form     siteForm
	Document string
	Wrong    []misplaced // with the document
	Rest     invalid.List
	Check    siteCheck
	Choices  []siteRoom
	Lines    []ruleLine
}

// Action is where the form is sent.
func (p rulesPage) Action() string {
	if p.Site == "" {
		return Path + "/new-site"
	}
	return Path + "/sites/" + p.Site + "/rules"
}

// starter is what the editor begins with: nobody waits by it until a room is named.
const starter = `{
  "version": 1,
  "hosts": [],
  "rooms": {},
  "rules": []
}
`

func (c *Console) newSite(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	p := rulesPage{As: asForm, Document: starter}
	if x.QueryParam("as") == asJSON {
		p.As = asJSON
	}
	var err error
	if p.Form, err = c.firstForm(ctx, x); err != nil {
		return err
	}
	if mode := x.QueryParam("mode"); mode == string(rules.SafetyNet) { // a link may propose it
		p.Form.Mode = mode
	}
	p.Name = nameOf(p.Form.Hosts)
	return c.rulesPage(ctx, x, http.StatusOK, p)
}

// nameOf proposes a name for a site, by its first host; empty for none.
func nameOf(hosts string) string {
	host, _, _ := strings.Cut(hosts, "\n")
	name, _, _ := strings.Cut(strings.TrimPrefix(host, "www."), ".")
	return slugOf(name)
}

// firstForm is the form for the room that the address names, or for the only
// one there is.
func (c *Console) firstForm(ctx context.Context, x *request) (siteForm, error) {
	slug := x.QueryParam("room")
	if slug == "" {
		choices, err := c.roomChoices(ctx, x, "")
		if err != nil || len(choices) != 1 {
			return newSiteForm("", nil), err
		}
		slug = choices[0].Slug
	}
	r, err := c.Control.Room(ctx, x.Actor, slug)
	if errors.Is(err, room.ErrNotFound) {
		return newSiteForm("", nil), nil
	}
	if err != nil {
		return siteForm{}, err
	}
	return newSiteForm(r.URL, r.Config().Targets), nil
}

// showRules shows the rules as a form if they fit one, and nobody wants the JSON.
func (c *Console) showRules(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	s, err := c.Sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := rulesPage{Site: s.Name, Version: s.Version, As: asForm, Document: string(s.Rules)}
	form, ok := siteFormOf(s.Rules)
	if p.Form = form; !ok || x.QueryParam("as") == asJSON {
		p.As = asJSON
	}
	return c.rulesPage(ctx, x, http.StatusOK, p)
}

// rulesPage answers with the page for writing rules.
func (c *Console) rulesPage(ctx context.Context, x *request, status int, p rulesPage) (err error) {
	if p.As == asForm {
		if p.Choices, err = c.roomChoices(ctx, x, p.Form.Room); err != nil {
			return err
		}
	}
	var shown invalid.List
	shown, p.Rest = p.split()
	if p.As == asJSON && len(p.Rest) > 0 {
		p.Wrong, p.Rest = misplace(p.Document, p.Rest), nil
	}
	return x.render(status, "site-rules", view{Data: p, Problems: shown})
}

// siteFields are those that the page has fields for.
var siteFields = map[string]bool{
	"": true, "name": true, "hosts": true, "room": true, "scope": true, "paths": true, "exceptions": true, "mode": true, "from": true, "until": true, "failure": true, "fail_open_after": true,
}

// split tells what stands beside a field from what does not.
func (p *rulesPage) split() (shown, rest invalid.List) {
	for _, problem := range p.Rest {
		if isMeta := problem.Field == "" || problem.Field == "name"; isMeta || p.As == asForm && siteFields[problem.Field] {
			shown = append(shown, problem)
		} else {
			rest = append(rest, problem)
		}
	}
	return shown, rest
}

func (c *Console) createSite(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	p := readRules(x)
	p.Name = cleanText(x.form("name"))
	return c.write(ctx, x, p, func(document []byte) (string, error) {
		made, err := c.Sites.Create(ctx, x.Actor, p.Name, document)
		switch {
		case errors.Is(err, account.ErrExists):
			err = invalid.Field("name", "is taken: your organization has a site of that name")
		case account.IsLimit(err):
			err = invalid.Field("", sentence(err))
		}
		return "/sites/" + made.Name + "/install?done=site-made", err
	})
}

func (c *Console) changeRules(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	s, err := c.Sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := readRules(x)
	p.Site = s.Name
	p.Version, err = strconv.ParseUint(x.form("version"), 10, 63)
	if err != nil || p.Version == 0 {
		return invalid.Field("version", "must be that of the rules which the page began with: load it again")
	}
	err = c.write(ctx, x, p, func(document []byte) (string, error) {
		_, err := c.Sites.Update(ctx, x.Actor, s.Name, p.Version, document)
		return "/sites/" + s.Name + "?done=site-saved", err
	})
	if errors.Is(err, control.ErrChanged) {
		return c.rulesConflict(ctx, x, p)
	}
	return err
}

// readRules reads what was typed.
func readRules(x *request) rulesPage {
	p := rulesPage{As: asForm, Form: readSiteForm(x.Request().PostForm), Document: cleanDocument(x.form("document"))}
	if x.form("as") == asJSON {
		p.As = asJSON
	}
	p.Check.URLs = cleanText(x.form("urls"))
	return p
}

// cleanDocument is a document as browsers send it, with the ends of lines that
// it had.
func cleanDocument(text string) string {
	return cleanText(text) + "\n"
}

// write does with the rules what the button says. save returns where to go on.
func (c *Console) write(ctx context.Context, x *request, p rulesPage, save func(document []byte) (string, error)) error {
	d := drafted{text: p.Document}
	var err error
	if p.As == asForm {
		d, err = p.Form.document()
	}
	if err == nil {
		switch x.form("do") {
		case asJSON:
			p.As, p.Document = asJSON, d.text
		case asForm:
			err = p.turn()
		case "check":
			err = p.look(c, d.text)
		default:
			var next string
			if next, err = save([]byte(d.text)); err == nil {
				return x.done(next, "")
			}
		}
	}
	wrong, ok := errors.AsType[*invalid.Error](err)
	if err != nil && !ok {
		return err
	}
	if !ok {
		return c.rulesPage(ctx, x, http.StatusOK, p)
	}
	p.Rest = d.place(wrong.Problems)
	return c.rulesPage(ctx, x, http.StatusBadRequest, p)
}

// turn shows the JSON as a form.
func (p *rulesPage) turn() error {
	if _, err := readDocument(p.Document); err != nil {
		return err
	}
	form, ok := siteFormOf([]byte(p.Document))
	if !ok {
		return invalid.Field("", "These rules say more than the form can: go on with the JSON.")
	}
	p.As, p.Form = asForm, form
	return nil
}

// readDocument reads a document; the error is an [*invalid.Error].
func readDocument(document string) (*rules.Site, error) {
	read, err := rules.Parse([]byte(document))
	if wrong, ok := errors.AsType[*rules.InvalidError](err); ok {
		var list invalid.List
		for _, p := range wrong.Problems {
			list.Add(cmp.Or(p.Field, "rules"), p.Detail) // the document as a whole
		}
		return nil, list.Err()
	}
	return read, err
}

// look says what a document does, and with some addresses.
func (p *rulesPage) look(c *Console, document string) error {
	read, err := readDocument(document)
	if err != nil {
		return err
	}
	p.Lines = ruleLines(read)
	p.Check = newSiteCheck([]byte(document), p.Check.URLs, c.Now())
	return nil
}

// rulesConflict shows what somebody else has saved in the meantime.
func (c *Console) rulesConflict(ctx context.Context, x *request, p rulesPage) error {
	theirs, err := c.Sites.Site(ctx, x.Actor, p.Site)
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
	return x.render(http.StatusConflict, "site-conflict", view{Data: siteConflict{
		Site: theirs, Diff: diffOf(string(theirs.Rules), mine), Action: p.Action(), Fields: x.sentAgain(), Back: Path + "/sites/" + p.Site + "/rules",
	}})
}

// siteConflict is what differs from rules that somebody else has saved.
type siteConflict struct {
	Site   sites.Site
	Diff   []diffLine
	Action string
	Fields []conflictField
	Back   string
}
