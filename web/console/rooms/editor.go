package rooms

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// editor serves the editor of drafts. One form serves all actions: the button that was used selects
// the action.
type editor struct {
	control *control.Rooms
	hosts   func(ctx context.Context, by account.Actor) ([]string, error) // nil: none
	trials  *trials
	log     *slog.Logger
}

func (h *editor) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/new", account.Operate, h.newRoom),
		shell.Post("/rooms/new", account.Operate, h.editDraft),
		shell.Get("/drafts/:id", account.Operate, h.showDraft),
		shell.Post("/drafts/:id", account.Operate, h.editDraft),
		shell.Post("/drafts/:id/simulate", account.Operate, h.trySale),
	}
}

// editorPage is the data of the editor.
type editorPage struct {
	ID       uuid.UUID // zero: not saved yet
	Version  int64
	Form     roomForm
	Problems invalid.List

	Hosts     []string
	Beacons   []string
	Keys      []control.IssuerKey // known keys of issuers
	Witnesses int
	BaseURL   string // what precedes the slug in the room's URL
	Outline   []string
	Capacity  capacityForm
	Flow      *flow
	Trial     trialForm
	Result    *trialResult
	Part      bool   // show only the part that a script requested
	From      preset // of a new room
	Lacks     string // what the server lacks for the preset; empty: nothing
	Focus     int    // window row that gets the focus; -1: none
	Open      string // ID of a section that is open besides those with problems; empty: none
}

// Action returns the target of the form.
func (p editorPage) Action() string {
	if p.ID == uuid.Nil {
		return shell.Path + "/rooms/new"
	}
	return shell.Path + "/drafts/" + p.ID.String()
}

// atOnce replaces the outline of a room that opens when it is published. The script has the same text.
const atOnce = "It opens when it is published. Enter an opening time to see its windows."

// Wrong returns the problem of exactly that member, or "".
func (p editorPage) Wrong(field string) string {
	for _, problem := range p.Problems {
		if problem.Field == field {
			return problem.Detail
		}
	}
	return ""
}

// helperFields are fields that do not belong to the room.
var helperFields = []string{"capacity", "simulation", "sim_visitors", "sim_tickets", "sim_bots", "sim_no_show"}

// shows reports whether a problem of a member appears at a field of the form.
func (f *roomForm) shows(field string) bool {
	list, _, _ := strings.Cut(field, "[")
	isField := func(s setting.Setting) bool {
		return s.Name == field || s.Name == list && newField(s, "", newRoom).Control == "lines"
	}
	if field == "host" || field == "windows" || slices.Contains(helperFields, field) ||
		slices.ContainsFunc(formSettings(), isField) {
		return true
	}
	for i := range f.Windows {
		at := fmt.Sprintf("windows[%d].", i)
		if field == at+"length" || field == at+"from" {
			return true
		}
	}
	return false
}

// Fields returns the fields of a group of settings.
func (p editorPage) Fields(group string) []formField {
	var list []formField
	for _, s := range formSettings() {
		if s.Form.Group != group {
			continue
		}
		f := newField(s, p.Form.Value(s.Name), newRoom)
		f.Autofocus = s.Name == "title" && p.Version == 0 && f.Value == ""
		switch s.Kind.(type) {
		case setting.Source:
			if f.Options = p.Beacons; len(f.Options) == 1 {
				f.Hint = "This server has no beacon. Its operator can name relays of one with --beacon-relays."
			}
		case setting.Zone:
			f.Here = p.Version == 0
		}
		if s.Name == "quorum" {
			if p.Witnesses == 0 && f.Value == "" && p.Wrong("quorum") == "" {
				continue
			}
			f.Hint = fmt.Sprintf("This server has %d. %s", p.Witnesses, f.Hint)
		}
		list = append(list, f)
	}
	return list
}

func (h *editor) newRoom(x *shell.Request) error {
	chosen, ok := findPreset(x.QueryParam("preset"))
	if !ok {
		list := make([]preset, len(presets))
		for i, p := range presets {
			list[i] = p.on(h.control)
		}
		data := map[string]any{"Presets": list, "Gains": &gained, "Control": h.control}
		return x.Render(http.StatusOK, "room-new", shell.View{Data: data, Beacon: beaconWarning(h.control)})
	}
	ctx, cancel := x.Wait()
	defer cancel()
	chosen = chosen.on(h.control)
	p := editorPage{Form: chosen.form(x.Now(), h.defaultBeacon()), Trial: defaultTrial(), From: chosen,
		Lacks: chosen.Lacks(h.control), Focus: -1, Open: chosen.opens()}
	return h.showEditor(ctx, x, http.StatusOK, p)
}

func (h *editor) showDraft(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	d, err := draftOf(ctx, h.control, x)
	if err != nil {
		return err
	}
	return h.showEditor(ctx, x, http.StatusOK, editorPage{
		ID: d.ID, Version: d.Version, Form: newRoomForm(d.Draft.Config, d.Host), Problems: d.Problems,
		Trial: defaultTrial(), Focus: -1,
	})
}

// draftOf finds the draft in the path.
func draftOf(ctx context.Context, rooms *control.Rooms, x *shell.Request) (control.Draft, error) {
	id, err := uuid.Parse(x.Param("id"))
	if err != nil {
		return control.Draft{}, control.ErrDraftUnknown
	}
	return rooms.Drafts.Get(ctx, x.Actor, id)
}

// showEditor completes the page with the server's choices, and shows it.
func (h *editor) showEditor(ctx context.Context, x *shell.Request, status int, p editorPage) error {
	var err error
	if h.hosts != nil {
		if p.Hosts, err = h.hosts(ctx, x.Actor); err != nil {
			return err
		}
	}
	if p.Form.Host != "" && !slices.Contains(p.Hosts, p.Form.Host) {
		p.Hosts = append(p.Hosts, p.Form.Host) // shown although publishing refuses it
	}
	p.Beacons = h.control.Beacons()
	if b := p.Form.Value("beacon"); b != "" && !slices.Contains(p.Beacons, b) {
		p.Beacons = append(p.Beacons, b)
	}
	if p.Keys, err = h.control.IssuerKeys(ctx, x.Actor); err != nil {
		return err
	}
	p.Witnesses = h.control.Witnesses()
	p.BaseURL = h.control.BaseURL(p.Form.Host)
	if p.Outline = p.Form.outline(); p.Form.Value("opens") == "" {
		p.Outline = []string{atOnce}
	}
	p.Problems = byLine(p.titleFirst(), p.Methods().AsText)
	return x.Render(status, "room-editor", shell.View{
		Data: p, Problems: p.Problems, Beacon: beaconWarning(h.control),
	})
}

// titleFirst returns the problems. If nothing is typed from which an address could be made, the title is missing.
func (p *editorPage) titleFirst() invalid.List {
	list := slices.Clone(p.Problems)
	for i := range list {
		if list[i].Field != "slug" || p.Form.Value("slug") != "" {
			continue
		}
		if p.Form.Value("title") == "" {
			list[i] = invalid.Problem{Field: "title",
				Detail: "is needed: visitors read it, and the room's address is made from it"}
		} else {
			list[i].Detail = "is needed: the title has no letters a-z or digits to make it from"
		}
	}
	return list
}

// byLine adds to each problem the lines of the field that it concerns, and merges equal problems of several lines.
// Methods have lines if they are edited as text.
func byLine(problems invalid.List, asText bool) (list invalid.List) {
	lines := map[invalid.Problem][]string{}
	fieldLine := func(p invalid.Problem) (of invalid.Problem, line string, ok bool) {
		if !asText && strings.HasPrefix(p.Field, "methods[") {
			return of, "", false
		}
		return fieldLine(p)
	}
	for _, p := range problems {
		if rows, line, ok := fieldLine(p); ok {
			lines[rows] = append(lines[rows], line)
		}
	}
	for _, p := range problems {
		if rows, _, ok := fieldLine(p); ok {
			of := lines[rows]
			if of == nil {
				continue // already included above
			}
			lines[rows] = nil
			what := "line "
			if len(of) > 1 {
				what = "lines "
			}
			p.Detail = what + strings.Join(of, ", ") + " " + rows.Detail
		}
		list = append(list, p)
	}
	return list
}

// fieldLine returns the line of a field that a problem concerns, and the problem without it; false if the field has
// no lines.
func fieldLine(p invalid.Problem) (of invalid.Problem, line string, ok bool) {
	list, rest, _ := strings.Cut(p.Field, "[")
	index, member, _ := strings.Cut(rest, "]")
	n, err := strconv.Atoi(index)
	s, _ := setting.Find(list)
	if err != nil || newField(s, "", newRoom).Control != "lines" {
		return of, "", false
	}
	of = invalid.Problem{Field: list, Detail: strings.TrimSpace(strings.TrimPrefix(member, ".") + " " + p.Detail)}
	return of, strconv.Itoa(n + 1), true
}

func (h *editor) defaultBeacon() string { return h.control.Beacons()[0] }

// editDraft carries out the action of the button that was used.
func (h *editor) editDraft(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	var d control.Draft
	var err error
	if x.Param("id") != "" {
		if d, err = draftOf(ctx, h.control, x); err != nil {
			return err
		}
	}
	p := readEditor(x, d)
	if p.Form.Value("slug") == "" {
		p.Form.set("slug", format.Slug(p.Form.Value("title")))
	}
	e := &edit{editor: h, x: x, stored: d, page: p}
	verb, argument, _ := strings.Cut(x.Form("do"), ":")
	switch verb {
	case "", "save":
		return e.save(ctx)
	case "publish":
		return e.publish(ctx)
	case "publish-saved":
		e.page.Form, e.stored.Version = newRoomForm(d.Draft.Config, d.Host), e.page.Version
		return e.create(ctx)
	case "delete":
		return e.remove(ctx)
	}
	if !e.page.change(verb, argument) {
		return invalid.Field("", "the form does not have this button: reload the page")
	}
	return h.showEditor(ctx, x, http.StatusOK, e.page)
}

// readEditor reads the whole form.
func readEditor(x *shell.Request, d control.Draft) editorPage {
	v := x.Request().PostForm
	version, err := strconv.ParseInt(v.Get("version"), 10, 64)
	if err != nil {
		version = -1 // a version that no draft has
	}
	return editorPage{ID: d.ID, Version: version, Form: readRoomForm(v), Capacity: readCapacityForm(v),
		Trial: readTrialForm(v), Focus: -1}
}

// change carries out actions that only change the form. It reports whether the button is known.
func (p *editorPage) change(verb, argument string) bool {
	switch verb {
	case "add-window":
		p.Form.addWindow()
		p.Focus, p.Open = len(p.Form.Windows)-1, "windows"
	case "remove-window":
		i, err := strconv.Atoi(argument)
		if err != nil {
			return false
		}
		p.Form.removeWindow(i)
		p.Open = "windows"
	case "add-method":
		p.Form.set("methods", strings.TrimPrefix(p.Form.Value("methods")+"\n"+newMethod, "\n"))
		p.Open = "door"
	case "remove-method":
		i, err := strconv.Atoi(argument)
		if err != nil {
			return false
		}
		p.Form.removeMethod(i)
		p.Open = "door"
	case "methods-as-text", "methods-in-rows":
		p.Form.AsText, p.Open = verb == "methods-as-text", "door"
	case "calculate", "use-capacity":
		p.Open = "outflow"
		f, ok := p.Capacity.flow()
		if !ok {
			p.Problems = invalid.List{{Field: "capacity",
				Detail: "enter a number of visitors, and how long each of them stays"}}
			return true
		}
		p.Flow = &f
		if verb == "use-capacity" {
			p.Form.set("outflow.per_minute", strconv.FormatUint(uint64(f.PerMinute), 10))
			p.Form.set("outflow.max_active", strconv.FormatUint(uint64(f.Capacity), 10))
		}
	default:
		return false
	}
	return true
}

// edit is a request that changes a draft.
type edit struct {
	*editor
	x      *shell.Request
	stored control.Draft
	page   editorPage
}

// store saves the draft as typed.
func (e *edit) store(ctx context.Context) (control.Draft, error) {
	config, err := e.page.Form.config(e.stored.Draft.Config)
	if err != nil {
		return control.Draft{}, fmt.Errorf("write draft: %w", err)
	}
	return e.control.Drafts.Save(ctx, e.x.Actor, e.stored.ID, e.page.Version, e.page.Form.Host, config)
}

func (e *edit) save(ctx context.Context) error {
	d, err := e.store(ctx)
	if err != nil {
		return e.refused(ctx, err)
	}
	return e.x.Done("/drafts/"+d.ID.String(), "draft-saved")
}

// publish saves the draft first, so that no input is lost if the room cannot be published, or the person
// cancels.
func (e *edit) publish(ctx context.Context) error {
	d, err := e.store(ctx)
	if err != nil {
		return e.refused(ctx, err)
	}
	e.stored, e.page.ID, e.page.Version = d, d.ID, d.Version
	if err := e.control.Drafts.Publishable(ctx, e.x.Actor, d); err != nil {
		return e.refused(ctx, err)
	}
	if !e.x.IsConfirmed() {
		fields := map[string]string{"do": "publish-saved", "version": strconv.FormatInt(d.Version, 10)}
		action := e.page.Action()
		return e.x.ConfirmFields(e.publishQuestion(d.Config(), e.page.Form), fields, action, action)
	}
	return e.create(ctx)
}

// create publishes the saved draft.
func (e *edit) create(ctx context.Context) error {
	d := e.stored
	r, err := e.control.Drafts.Publish(ctx, e.x.Actor, d.ID, d.Version)
	if errors.Is(err, control.ErrChanged) {
		return err // the draft was changed between saving and publishing
	}
	if errors.Is(err, room.ErrExists) {
		err = invalid.Field("slug", control.SlugTaken)
	}
	if err != nil {
		return e.refused(ctx, err)
	}
	if len(e.control.OwnMethods(r)) > 0 {
		return e.x.Done("/rooms/"+r.Slug+"/codes", "room-published")
	}
	return e.x.Done("/rooms/"+r.Slug, "room-published")
}

func (e *edit) remove(ctx context.Context) error {
	if e.stored.ID == uuid.Nil {
		return e.x.Done("/rooms", "")
	}
	if !e.x.IsConfirmed() {
		return e.x.Confirm(shell.Ask("Delete this draft?", "Delete draft",
			"A deleted draft cannot be restored.").Dangerous(), "/drafts/"+e.stored.ID.String())
	}
	if err := e.control.Drafts.Delete(ctx, e.x.Actor, e.stored.ID); err != nil {
		return err
	}
	return e.x.Done("/rooms", "draft-deleted")
}

// refused shows the form again with its problems, or next to the version that another person has saved.
func (e *edit) refused(ctx context.Context, err error) error {
	if errors.Is(err, control.ErrChanged) {
		return e.conflict(ctx)
	}
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		return err
	}
	e.page.Problems = wrong.Problems
	return e.showEditor(ctx, e.x, http.StatusBadRequest, e.page)
}

// conflictPage compares two versions so that the person can choose one.
type conflictPage struct {
	Title   string
	Who     string // the person who saved the other version; empty: unknown
	Changed any    // time of the other version
	Rows    []conflictRow
	Action  string
	Button  string
	Fields  []shell.Field // the typed fields, to be sent again
	Back    string        // URL of the other version's page
}

// conflictRow is a difference.
type conflictRow struct{ Label, Theirs, Yours string }

func (e *edit) conflict(ctx context.Context) error {
	theirs, err := draftOf(ctx, e.control, e.x)
	if err != nil {
		return err
	}
	e.x.Request().PostForm.Set("version", strconv.FormatInt(theirs.Version, 10))
	e.x.Request().PostForm.Set("do", "save")
	typed, err := e.page.Form.config(e.stored.Draft.Config)
	if err != nil {
		return err
	}
	yours, other := newRoomForm(typed, e.page.Form.Host), newRoomForm(theirs.Draft.Config, theirs.Host)
	return e.x.Render(http.StatusConflict, "room-conflict", shell.View{Data: conflictPage{
		Title: "This draft was changed in the meantime", Who: theirs.By, Changed: theirs.Changed,
		Rows: differences(other.draftLines(), yours.draftLines()), Action: e.page.Action(),
		Button: "Overwrite with mine",
		Fields: e.x.Fields(), Back: e.page.Action(),
	}})
}

// draftLines returns the fields of a draft in words, to compare two versions.
func (f *roomForm) draftLines() []line {
	return append(f.lines(formSettings()), line{"Host", f.Host}, line{"Windows", f.windowLines("the opening")})
}

// yesNo writes a flag.
func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func differences(theirs, yours []line) []conflictRow {
	var rows []conflictRow
	for i := range theirs {
		if theirs[i].value != yours[i].value {
			rows = append(rows, conflictRow{theirs[i].label, theirs[i].value, yours[i].value})
		}
	}
	return rows
}
