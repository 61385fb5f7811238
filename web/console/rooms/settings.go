package rooms

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// settings serves the settings of published rooms.
type settings struct {
	control *control.Rooms
	sites   Sites
}

func (h *settings) routes() []shell.Route {
	return []shell.Route{
		shell.Get("/rooms/:slug/settings", account.Operate, shell.OfRoom(h.control, h.showSettings)),
		shell.Post("/rooms/:slug/settings", account.Operate, shell.OfRoom(h.control, h.changeSettings)),
	}
}

// published is the state of a room that its settings form depends on.
type published struct {
	config room.Config
	now    time.Time
	fixed  []room.WindowRule // rules that can no longer change
	open   []room.WindowRule // rules that can change
	from   time.Time         // windows that begin later can change
	over   bool              // the room closes within the notice, so windows cannot change
	ended  bool
}

func newPublished(r *room.Room) published {
	s, now := r.Snapshot(), r.Now()
	p := published{config: r.Config(), now: now, from: s.Opens, ended: s.Ended}
	last := s.Fixed(now) // a window that begins by then stays
	if window, ok := s.Window(last); ok {
		p.from = time.UnixMilli(int64(window.To)).UTC()
	}
	p.over = s.Ended || s.Closes != nil && !last.Before(*s.Closes)
	for _, rule := range p.config.Windows {
		if p.over || rule.From.Before(p.from) {
			p.fixed = append(p.fixed, rule)
		} else {
			p.open = append(p.open, rule)
		}
	}
	return p
}

// isOpen reports whether the first window has begun, or will within the notice.
func (p *published) isOpen() bool { return len(p.fixed) > 0 }

// version identifies the state of everything that the form can change.
func (p *published) version() string { return settingsVersion(p.config) }

// settingsVersion returns a digest of the configuration without the brand.
func settingsVersion(c room.Config) string {
	c.Brand = branding.Brand{}
	text, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// form shows the room as it is, with the windows that have not opened.
func (p *published) form() roomForm {
	text, _ := json.Marshal(p.config) // strings, numbers and times can be encoded
	f := newRoomForm(text, "")
	f.Windows = nil
	for _, rule := range p.open {
		f.Windows = append(f.Windows, windowField{rule.From.Format(format.MomentLayout), format.Duration(rule.Length)})
	}
	return f
}

// settings returns the settings that the form has fields for: those that can still change.
func (p *published) settings() []setting.Setting {
	return slices.DeleteFunc(formSettings(), func(s setting.Setting) bool {
		switch s.Change {
		case setting.Never:
			return true
		case setting.Recorded:
			return p.ended || s.Form.Group == "times" && p.over
		default:
			return false
		}
	})
}

// settingsChange is a change of a room, and the position of its windows in the form.
type settingsChange struct {
	room.Amendment
	isEmpty bool
	shift   int // row in the form minus index in the amendment
}

// amendmentOf returns the change that the form makes to the room.
func amendmentOf(f *roomForm, p *published) (settingsChange, error) {
	was := p.form()
	members := map[string]any{}
	for _, s := range p.settings() {
		if text := f.Value(s.Name); text != was.Value(s.Name) {
			setting.Put(members, s.Name, jsonChanged(s.Kind, text))
		}
	}
	var a settingsChange
	if !p.over {
		if rules, shift := changedWindows(f, p); len(rules) > 0 {
			members["windows"], a.shift = rules, shift
		}
	}
	if a.isEmpty = len(members) == 0; a.isEmpty {
		return a, nil
	}
	text, err := json.Marshal(members)
	if err != nil {
		return a, fmt.Errorf("write amendment: %w", err)
	}
	a.Amendment, err = room.ParseAmendment(text)
	if f.Value("title") == "" {
		err = withProblem(err, "title", "is needed")
	}
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return a, a.inForm(wrong.Problems).Err()
	}
	return a, err
}

// withProblem adds a problem to those of an error.
func withProblem(err error, field, detail string) error {
	return append(invalid.List{{Field: field, Detail: detail}}, invalid.Problems(err)...).Err()
}

// changedWindows returns the rules for the amendment, or none if nothing changes. An amendment replaces
// all rules from its first one on, so rules before the first difference are left out. If a rule is removed
// or begins later, the previous rule has to be repeated.
func changedWindows(f *roomForm, p *published) (rules []map[string]any, shift int) {
	same := 0
	for same < len(f.Windows) && same < len(p.open) && isSameRule(f.Windows, same, p.open[same]) {
		same++
	}
	if same == len(f.Windows) && same == len(p.open) {
		return nil, 0
	}
	shift = same
	if from, length, ok := continued(f.Windows, p, same); ok {
		rules = append(rules, map[string]any{"from": from, "length": length})
		shift--
	}
	for i, row := range f.Windows[same:] {
		from := row.From
		if same+i == 0 && !p.isOpen() {
			from = p.config.Opens.Format(format.MomentLayout)
		}
		rules = append(rules, map[string]any{"from": jsonMoment(from), "length": jsonLength(row.Length)})
	}
	return rules, shift
}

// isSameRule reports whether a row has the values of a rule.
func isSameRule(rows []windowField, i int, rule room.WindowRule) bool {
	length, ok := format.ReadLength(rows[i].Length)
	from, known := format.ParseMoment(rows[i].From)
	return ok && length == time.Duration(rule.Length) &&
		(i == 0 && rows[i].From == "" || known && from.Equal(*rule.From))
}

// continued returns the rule before the first difference, from its last window before a removed rule. It also
// reports whether a rule was removed.
func continued(rows []windowField, p *published, same int) (from string, length room.Duration, ok bool) {
	if same == len(p.open) {
		return "", 0, false
	}
	gone := *p.open[same].From
	if same < len(rows) {
		if next, known := format.ParseMoment(rows[same].From); !known || !next.After(gone) {
			return "", 0, false
		}
	}
	rules := append(p.fixed[:len(p.fixed):len(p.fixed)], p.open[:same]...)
	if len(rules) == 0 {
		return "", 0, false
	}
	last := rules[len(rules)-1]
	begins := last.From.Add(gone.Sub(*last.From) / time.Duration(last.Length) * time.Duration(last.Length))
	if begins.Before(p.from) {
		begins = p.from
	}
	return begins.Format(format.MomentLayout), last.Length, true
}

// inForm replaces the amendment's windows in problems with the form's rows.
func (a *settingsChange) inForm(problems invalid.List) invalid.List {
	list := make(invalid.List, len(problems))
	for i, problem := range problems {
		list[i] = problem
		rest, ok := strings.CutPrefix(problem.Field, "windows[")
		if !ok {
			continue
		}
		at, member, _ := strings.Cut(rest, "]")
		if n, err := strconv.Atoi(at); err == nil && n+a.shift >= 0 {
			list[i].Field = fmt.Sprintf("windows[%d]%s", n+a.shift, member)
		} else {
			list[i].Field = "windows"
		}
	}
	return list
}

// settingsPage is the data of the settings page.
type settingsPage struct {
	Slug, Name string
	Form       roomForm
	Base       string // version of the room that the form was made from
	Room       published
	Fixed      []fixedRule
	Opens      string // opening time, for the timeline
	Outline    []string
	Problems   invalid.List
	Focus      int
	NoSigner   bool // no connector that could sign return addresses has reported
}

// fixedRule is a rule that can no longer change.
type fixedRule struct {
	From   time.Time
	Length string
	Millis int64 // length of its windows
}

// IsOpen reports whether the first window has begun, or will within the notice.
func (p settingsPage) IsOpen() bool { return p.Room.isOpen() }

// Over reports whether windows and closing time can no longer change.
func (p settingsPage) Over() bool { return p.Room.over }

// Ended reports whether the room has ended.
func (p settingsPage) Ended() bool { return p.Room.ended }

// From returns the time from which windows can change.
func (p settingsPage) From() time.Time { return p.Room.from }

// Starts returns the start of the room.
func (p settingsPage) Starts() string { return p.Room.config.Starts.Format(format.MomentLayout) }

// Fields returns the fields of a group of settings.
func (p settingsPage) Fields(group string) []formField {
	var list []formField
	for _, s := range p.Room.settings() {
		if s.Form.Group == group {
			list = append(list, newField(s, p.Form.Value(s.Name), publishedRoom))
		}
	}
	return list
}

// Kept returns the settings that were fixed when the room was published, in words. The page shows the times
// elsewhere.
func (p settingsPage) Kept() (list []conflictRow) {
	f := p.Room.form()
	for _, s := range formSettings() {
		if text := f.Value(s.Name); s.Change == setting.Never && text != "" && s.Form.Group != "times" &&
			s.Name != "slug" {
			list = append(list, conflictRow{Label: s.Label, Yours: typedWords(s.Kind, text)})
		}
	}
	return list
}

// Wrong returns the problem of exactly that member, or "".
func (p settingsPage) Wrong(field string) string {
	return editorPage{Problems: p.Problems}.Wrong(field)
}

// Rest returns the problems of members without a field in the form.
func (p settingsPage) Rest() invalid.List {
	var list invalid.List
	for _, problem := range p.Problems {
		if problem.Field != "" && !p.Form.shows(problem.Field) {
			list = append(list, problem)
		}
	}
	return list
}

func (h *settings) showSettings(ctx context.Context, x *shell.Request, r *room.Room) error {
	isSigned, err := h.hasSigner(ctx, x.Actor, r)
	if err != nil {
		return err
	}
	p := newPublished(r)
	return settingsPage{Form: p.form(), Base: p.version(), Focus: -1, NoSigner: !isSigned}.answer(x, http.StatusOK, &p)
}

// hasSigner reports whether a connector with a token has reported in the last day whose rules name the
// room: it can sign return addresses. Rules that belong to no site may name any room.
func (h *settings) hasSigner(ctx context.Context, by account.Actor, r *room.Room) (bool, error) {
	if h.sites == nil {
		return false, nil
	}
	list, err := h.sites.List(ctx, by)
	if err != nil {
		return false, err
	}
	isFor := map[string]bool{"": true}
	for _, s := range list {
		isFor[s.Name] = slices.Contains(s.Rooms, r.URL)
	}
	connectors, err := h.sites.AllConnectors(ctx, by)
	return slices.ContainsFunc(connectors, func(k site.Connector) bool { return isFor[k.Site] }), err
}

// answer completes the page with the state of the room, and shows it.
func (p settingsPage) answer(x *shell.Request, status int, r *published) error {
	p.Slug, p.Name, p.Room = r.config.Slug, r.config.Title, *r
	p.Opens = r.config.Opens.Format(format.MomentLayout)
	for _, rule := range r.fixed {
		p.Fixed = append(p.Fixed, fixedRule{rule.From.UTC(), format.Duration(rule.Length),
			time.Duration(rule.Length).Milliseconds()})
	}
	p.Outline = p.outline()
	p.Problems = byLine(p.Problems, true)
	return x.Render(status, "room-settings", shell.View{Data: p, Problems: p.Problems})
}

// outline describes the room's windows with the form's changes.
func (p *settingsPage) outline() []string {
	var whole roomForm
	whole.set("opens", p.Opens)
	whole.set("starts", p.Starts())
	whole.set("closes", p.Form.Value("closes"))
	for _, rule := range p.Fixed {
		whole.Windows = append(whole.Windows, windowField{rule.From.Format(format.MomentLayout), rule.Length})
	}
	whole.Windows = append(whole.Windows, p.Form.Windows...)
	return whole.outline()
}

func (h *settings) changeSettings(ctx context.Context, x *shell.Request, r *room.Room) error {
	isSigned, err := h.hasSigner(ctx, x.Actor, r)
	if err != nil {
		return err
	}
	p := newPublished(r)
	page := settingsPage{Form: readRoomForm(x.Request().PostForm), Base: x.Form("base"), Focus: -1, NoSigner: !isSigned}
	verb, argument, _ := strings.Cut(x.Form("do"), ":")
	switch verb {
	case "", "save":
		return h.saveSettings(ctx, x, r, &p, page)
	case "add-window", "remove-window":
		page.changeRows(verb, argument, &p)
		return page.answer(x, http.StatusOK, &p)
	}
	return invalid.Field("", "the form does not have this button: reload the page")
}

// changeRows adds or removes a window row. Once the room is open, there may be none: then the open windows
// continue.
func (p *settingsPage) changeRows(verb, argument string, r *published) {
	f := roomForm{Windows: p.Form.Windows}
	f.set("opens", r.config.Opens.Format(format.MomentLayout))
	f.set("starts", r.config.Starts.Format(format.MomentLayout))
	switch i, err := strconv.Atoi(argument); {
	case verb == "add-window" && len(f.Windows) == 0:
		f.Windows = []windowField{{From: r.from.Format(format.MomentLayout), Length: "1 min"}}
		p.Focus = 0
	case verb == "add-window":
		f.addWindow()
		p.Focus = len(f.Windows) - 1
	case err == nil && r.isOpen() && i >= 0 && i < len(f.Windows):
		f.Windows = slices.Delete(f.Windows, i, i+1)
	case err == nil && !r.isOpen():
		f.removeWindow(i)
	}
	p.Form.Windows = f.Windows
}

func (h *settings) saveSettings(ctx context.Context, x *shell.Request, r *room.Room, p *published,
	page settingsPage) error {
	a, err := amendmentOf(&page.Form, p)
	switch {
	case err != nil && page.Base == p.version():
		return page.refused(x, p, err)
	case a.isEmpty && page.Base == p.version():
		return x.Done("/rooms/"+r.Slug+"/settings", "settings-same")
	}
	same := func(now room.Config) bool {
		return subtle.ConstantTimeCompare([]byte(settingsVersion(now)), []byte(page.Base)) == 1
	}
	if wrong, ok := errors.AsType[*invalid.Error](r.Check(a.Amendment)); ok && page.Base == p.version() {
		return page.refused(x, p, a.inForm(wrong.Problems).Err())
	}
	if page.Base == p.version() && !x.IsConfirmed() {
		return x.Confirm(settingsQuestion(p, page.Form), "/rooms/"+r.Slug+"/settings")
	}
	if page.Base != p.version() {
		err = control.ErrChanged
	} else {
		_, err = h.control.Amend(ctx, x.Actor, r.Slug, a.Amendment, same)
	}
	if errors.Is(err, control.ErrChanged) {
		return page.conflict(x, r)
	}
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		err = a.inForm(wrong.Problems).Err()
	}
	if err != nil {
		return page.refused(x, p, err)
	}
	return x.Done("/rooms/"+r.Slug+"/settings", "settings-saved")
}

// settingsQuestion shows every setting that changes.
func settingsQuestion(p *published, now roomForm) shell.Question {
	q := shell.Question{Title: "Save these changes?", Button: "Save changes"}
	for _, row := range differences(p.lines(p.form()), p.lines(now)) {
		q.Changes = append(q.Changes, shell.Changed(row.Label, format.Lines(row.Theirs), format.Lines(row.Yours)))
	}
	q.Notes = []string{"Changes of the outflow, the windows and the closing time are recorded in the public transcript."}
	return q
}

// refused shows the form again with its problems.
func (p settingsPage) refused(x *shell.Request, r *published, err error) error {
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		return err
	}
	p.Problems = wrong.Problems
	return p.answer(x, http.StatusBadRequest, r)
}

func (p settingsPage) conflict(x *shell.Request, r *room.Room) error {
	now := newPublished(r)
	x.Request().PostForm.Set("base", now.version())
	x.Request().PostForm.Set("do", "save")
	path := shell.Path + "/rooms/" + r.Slug + "/settings"
	return x.Render(http.StatusConflict, "room-conflict", shell.View{Data: conflictPage{
		Title: "This room was changed in the meantime", Rows: differences(now.lines(now.form()), now.lines(p.Form)),
		Action: path, Button: "Overwrite with mine", Fields: x.Fields(), Back: path,
	}})
}

// lines returns the members of a form of the room in words, to compare two of them.
func (p *published) lines(f roomForm) []line {
	return append(f.lines(p.settings()), line{"Windows that have not opened", f.windowLines("")})
}
