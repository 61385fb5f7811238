package console

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// settingsRoutes are what can be changed of a published room.
func (c *Console) settingsRoutes() []route {
	return []route{
		{GET, "/rooms/:slug/settings", account.Operate, c.ofRoom(c.showSettings)},
		{POST, "/rooms/:slug/settings", account.Operate, c.ofRoom(c.changeSettings)},
	}
}

// settingsForm is what is typed.
type settingsForm struct {
	Title                string
	PerMinute, MaxActive string
	Closes               string
	MaxWaiting, Targets  string
	SignedReturn         bool
	TimeZone             string
	Windows              []windowField // that have not opened
}

// published is a room as a form of settings is made from it.
type published struct {
	config room.Config
	now    time.Time
	fixed  []room.WindowRule // that have opened, or are about to
	open   []room.WindowRule // that may change
	from   time.Time         // from when on windows may change
	over   bool              // nobody can join any more, so no windows can change
	ended  bool
}

func newPublished(r *room.Room) published {
	s, now := r.Snapshot(), r.Now()
	p := published{config: r.Config(), now: now, from: s.Opens, ended: s.Ended}
	if window, ok := s.Window(now); ok {
		p.from = time.UnixMilli(int64(window.To)).UTC()
	}
	p.over = s.Ended || s.Closes != nil && !now.Before(*s.Closes)
	for _, rule := range p.config.Windows {
		if p.over || rule.From.Before(p.from) {
			p.fixed = append(p.fixed, rule)
		} else {
			p.open = append(p.open, rule)
		}
	}
	return p
}

// isOpen tells whether the first window has begun.
func (p *published) isOpen() bool { return len(p.fixed) > 0 }

// version names the state of everything that the form changes.
func (p *published) version() string { return settingsVersion(p.config) }

// settingsVersion is a digest: somebody's change of the brand does not matter here.
func settingsVersion(c room.Config) string {
	c.Brand = room.Brand{}
	text, err := json.Marshal(c)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// form shows the room as it is.
func (p *published) form() settingsForm {
	c := p.config
	f := settingsForm{
		Title: c.Title, PerMinute: fmt.Sprint(c.Outflow.PerMinute), MaxActive: fmt.Sprint(c.Outflow.MaxActive),
		MaxWaiting: fmt.Sprint(c.MaxWaiting), Targets: strings.Join(c.Targets, "\n"), SignedReturn: c.SignedReturn, TimeZone: c.TimeZone,
	}
	if c.Closes != nil {
		f.Closes = c.Closes.Format(momentForm)
	}
	for _, rule := range p.open {
		f.Windows = append(f.Windows, windowField{rule.From.Format(momentForm), duration(rule.Length)})
	}
	return f
}

func readSettingsForm(v url.Values) settingsForm {
	f := readRoomForm(v)
	return settingsForm{
		Title: f.Title, PerMinute: f.PerMinute, MaxActive: f.MaxActive,
		Closes: f.Closes, MaxWaiting: f.MaxWaiting, Targets: f.Targets, SignedReturn: f.SignedReturn, TimeZone: f.TimeZone, Windows: f.Windows,
	}
}

// settingsChange is a change of a room, and where its windows stand in the form.
type settingsChange struct {
	room.Amendment
	isEmpty bool
	shift   int // row of the form less index in the amendment
}

// amendment reads what is different from the room as it is.
func (f *settingsForm) amendment(p *published) (settingsChange, error) {
	was := p.form()
	members := map[string]any{}
	if f.Title != was.Title {
		members["title"] = f.Title
	}
	if v := jsonNumber(f.MaxWaiting); f.MaxWaiting != was.MaxWaiting {
		members["max_waiting"] = orZero(v)
	}
	if list := targetLines(f.Targets); strings.Join(list, "\n") != was.Targets {
		members["targets"] = list
	}
	if f.TimeZone != was.TimeZone {
		members["time_zone"] = f.TimeZone
	}
	if f.SignedReturn != was.SignedReturn {
		members["signed_return"] = f.SignedReturn
	}
	var a settingsChange
	if !p.ended {
		f.addOutflow(&was, members)
	}
	if !p.over {
		if f.Closes != was.Closes {
			members["closes"] = f.Closes // no close at all is refused below: it cannot be taken away
		}
		if rules, shift := f.changedWindows(p); len(rules) > 0 {
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
	if f.Title == "" {
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

func orZero(v any) any {
	if v == nil {
		return 0
	}
	return v
}

func (f *settingsForm) addOutflow(was *settingsForm, members map[string]any) {
	outflow := map[string]any{}
	if f.PerMinute != was.PerMinute {
		outflow["per_minute"] = orZero(jsonNumber(f.PerMinute))
	}
	if f.MaxActive != was.MaxActive {
		outflow["max_active"] = orZero(jsonNumber(f.MaxActive))
	}
	if len(outflow) > 0 {
		members["outflow"] = outflow
	}
}

// changedWindows returns the rules that an amendment needs, none for no change.
// Rules of an amendment hold from the first one's moment on, so those before
// the first difference are left out; where a rule is taken away or begins
// later, the one before it has to be said again.
func (f *settingsForm) changedWindows(p *published) (rules []map[string]any, shift int) {
	same := 0
	for same < len(f.Windows) && same < len(p.open) && f.isSame(same, p.open[same]) {
		same++
	}
	if same == len(f.Windows) && same == len(p.open) {
		return nil, 0
	}
	shift = same
	if from, length, ok := f.continued(p, same); ok {
		rules = append(rules, map[string]any{"from": from, "length": length})
		shift--
	}
	for i, row := range f.Windows[same:] {
		from := row.From
		if same+i == 0 && !p.isOpen() {
			from = p.config.Opens.Format(momentForm)
		}
		rules = append(rules, map[string]any{"from": jsonMoment(from), "length": jsonLength(row.Length)})
	}
	return rules, shift
}

// isSame tells whether a row says a rule.
func (f *settingsForm) isSame(i int, rule room.WindowRule) bool {
	length, ok := readLength(f.Windows[i].Length)
	from, known := parseMoment(f.Windows[i].From)
	return ok && length == time.Duration(rule.Length) && (i == 0 && f.Windows[i].From == "" || known && from.Equal(*rule.From))
}

// continued returns the rule before the first difference, to hold from its last
// window before the rule that is gone; false when none is gone.
func (f *settingsForm) continued(p *published, same int) (from string, length room.Duration, ok bool) {
	if same == len(p.open) {
		return "", 0, false
	}
	gone := *p.open[same].From
	if same < len(f.Windows) {
		if next, known := parseMoment(f.Windows[same].From); !known || !next.After(gone) {
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
	return begins.Format(momentForm), last.Length, true
}

// inForm names the rows of the form in problems of the amendment's windows.
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

// settingsPage is what the page shows.
type settingsPage struct {
	Slug, Name string
	Form       settingsForm
	Base       string // the room that the form was made from
	Room       published
	Fixed      []fixedRule
	Opens      string // of the room, for the timeline
	Outline    []string
	Problems   invalid.List
	Focus      int
	NoSigner   bool // no connector was heard of that could sign where people come back to
}

// fixedRule is a rule that cannot change any more.
type fixedRule struct {
	From   time.Time
	Length string
	Millis int64 // the length
}

// IsOpen tells whether the first window has begun.
func (p settingsPage) IsOpen() bool { return p.Room.isOpen() }

// Over tells whether windows and close can change no more.
func (p settingsPage) Over() bool { return p.Room.over }

// Ended tells whether the room has.
func (p settingsPage) Ended() bool { return p.Room.ended }

// From is from when on windows can change.
func (p settingsPage) From() time.Time { return p.Room.from }

// Starts is when people are called first.
func (p settingsPage) Starts() string { return p.Room.config.Starts.Format(momentForm) }

// Kept is the room as it was published, of which some members never change.
func (p settingsPage) Kept() room.Config { return p.Room.config }

// Wrong is what is wrong with exactly that member.
func (p settingsPage) Wrong(field string) string {
	return editorPage{Problems: p.Problems}.Wrong(field)
}

// Rest are the problems of members that the form has no field for.
func (p settingsPage) Rest() invalid.List {
	form := roomForm{Windows: p.Form.Windows}
	var list invalid.List
	for _, problem := range p.Problems {
		if problem.Field != "" && !form.shows(problem.Field) {
			list = append(list, problem)
		}
	}
	return list
}

func (c *Console) showSettings(ctx context.Context, x *request, r *room.Room) error {
	isSigned, err := c.hasSigner(ctx, x.Actor, r)
	if err != nil {
		return err
	}
	p := newPublished(r)
	return x.settings(http.StatusOK, &p, settingsPage{Form: p.form(), Base: p.version(), Focus: -1, NoSigner: !isSigned})
}

// hasSigner tells whether a connector with a token was heard of in the last day
// that goes by rules with the room: it signs where people come back to. Which
// rooms are in rules of no site, nobody knows.
func (c *Console) hasSigner(ctx context.Context, by account.Actor, r *room.Room) (bool, error) {
	list, err := c.Sites.List(ctx, by)
	if err != nil {
		return false, err
	}
	isFor := map[string]bool{"": true}
	for _, s := range list {
		isFor[s.Name] = slices.Contains(s.Rooms, r.URL)
	}
	connectors, err := c.Sites.AllConnectors(ctx, by)
	return slices.ContainsFunc(connectors, func(k sites.Connector) bool { return isFor[k.Site] }), err
}

// settings fills in what the page shows of the room.
func (x *request) settings(status int, p *published, page settingsPage) error {
	page.Slug, page.Name, page.Room = p.config.Slug, p.config.Title, *p
	page.Opens = p.config.Opens.Format(momentForm)
	for _, rule := range p.fixed {
		page.Fixed = append(page.Fixed, fixedRule{rule.From.UTC(), duration(rule.Length), time.Duration(rule.Length).Milliseconds()})
	}
	page.Outline = page.outline()
	page.Problems = byLine(page.Problems)
	return x.render(status, "room-settings", view{Data: page, Problems: page.Problems})
}

// outline says what the room's windows mean with the form's changes.
func (p *settingsPage) outline() []string {
	whole := roomForm{Opens: p.Opens, Starts: p.Starts(), Closes: p.Form.Closes}
	for _, rule := range p.Fixed {
		whole.Windows = append(whole.Windows, windowField{rule.From.Format(momentForm), rule.Length})
	}
	whole.Windows = append(whole.Windows, p.Form.Windows...)
	return whole.outline()
}

func (c *Console) changeSettings(ctx context.Context, x *request, r *room.Room) error {
	isSigned, err := c.hasSigner(ctx, x.Actor, r)
	if err != nil {
		return err
	}
	p := newPublished(r)
	page := settingsPage{Form: readSettingsForm(x.Request().PostForm), Base: x.form("base"), Focus: -1, NoSigner: !isSigned}
	verb, argument, _ := strings.Cut(x.form("do"), ":")
	switch verb {
	case "", "save":
		return c.saveSettings(ctx, x, r, &p, page)
	case "add-window", "remove-window":
		page.changeRows(verb, argument, &p)
		return x.settings(http.StatusOK, &p, page)
	}
	return invalid.Field("", "the form has no such button: load the page again")
}

// changeRows adds a row to the windows or removes one. Once the room is open
// there may be none: then the windows that are open go on.
func (p *settingsPage) changeRows(verb, argument string, r *published) {
	f := roomForm{Opens: r.config.Opens.Format(momentForm), Starts: r.config.Starts.Format(momentForm), Windows: p.Form.Windows}
	switch i, err := strconv.Atoi(argument); {
	case verb == "add-window" && len(f.Windows) == 0:
		f.Windows = []windowField{{From: r.from.Format(momentForm), Length: "1 min"}}
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

func (c *Console) saveSettings(ctx context.Context, x *request, r *room.Room, p *published, page settingsPage) error {
	a, err := page.Form.amendment(p)
	switch {
	case err != nil && page.Base == p.version():
		return page.refused(x, p, err)
	case a.isEmpty && page.Base == p.version():
		return x.done("/rooms/"+r.Slug+"/settings", "settings-same")
	}
	same := func(now room.Config) bool {
		return subtle.ConstantTimeCompare([]byte(settingsVersion(now)), []byte(page.Base)) == 1
	}
	if wrong, ok := errors.AsType[*invalid.Error](r.Check(a.Amendment)); ok && page.Base == p.version() {
		return page.refused(x, p, a.inForm(wrong.Problems).Err())
	}
	if page.Base == p.version() && !x.isConfirmed() {
		return x.confirm(settingsQuestion(p.form(), page.Form), "/rooms/"+r.Slug+"/settings")
	}
	if page.Base != p.version() {
		err = control.ErrChanged
	} else {
		_, err = c.Control.Amend(ctx, x.Actor, r.Slug, a.Amendment, same)
	}
	if errors.Is(err, control.ErrChanged) {
		return x.settingsConflict(r, page)
	}
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		err = a.inForm(wrong.Problems).Err()
	}
	if err != nil {
		return page.refused(x, p, err)
	}
	return x.done("/rooms/"+r.Slug+"/settings", "settings-saved")
}

// settingsQuestion shows every setting that changes.
func settingsQuestion(was, now settingsForm) question {
	q := question{Title: "Save these changes?", Button: "Save changes"}
	for _, row := range differences(was.lines(), now.lines()) {
		q.Changes = append(q.Changes, change{Label: row.Label, Was: lines(row.Theirs), Is: lines(row.Yours)})
	}
	q.Notes = []string{"Changes of the outflow, the windows and the close are recorded in the public transcript."}
	return q
}

// refused shows the form again with what is wrong.
func (p settingsPage) refused(x *request, r *published, err error) error {
	wrong, ok := errors.AsType[*invalid.Error](err)
	if !ok {
		return err
	}
	p.Problems = wrong.Problems
	return x.settings(http.StatusBadRequest, r, p)
}

func (x *request) settingsConflict(r *room.Room, page settingsPage) error {
	now := newPublished(r)
	theirs := now.form()
	x.Request().PostForm.Set("base", now.version())
	x.Request().PostForm.Set("do", "save")
	path := Path + "/rooms/" + r.Slug + "/settings"
	return x.render(http.StatusConflict, "room-conflict", view{Data: conflictPage{
		Title: "This room was changed meanwhile", Rows: differences(theirs.lines(), page.Form.lines()),
		Action: path, Button: "Save mine over it", Fields: x.sentAgain(), Back: path,
	}})
}

// lines are the form's members in words, to compare two of them.
func (f *settingsForm) lines() []line {
	var windows []string
	for _, w := range f.Windows {
		windows = append(windows, fmt.Sprintf("from %s: %s", momentLine(w.From), w.Length))
	}
	return []line{
		{"Title", f.Title}, {"People per minute", f.PerMinute}, {"At once", f.MaxActive}, {"Closes", momentLine(f.Closes)}, {"Time zone", f.TimeZone},
		{"Windows that have not opened", strings.Join(windows, "\n")}, {"Most in line", f.MaxWaiting}, {"Addresses of the shop", f.Targets}, {"Back to signed pages alone", yesNo(f.SignedReturn)},
	}
}
