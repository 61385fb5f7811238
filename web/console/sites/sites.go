// Package sites serves the console's pages about sites: the list, a site and its connectors, the
// rules editor, installation, and history.
package sites

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
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

// Rooms finds the rooms that a person may see.
type Rooms interface {
	shell.Rooms
	List(ctx context.Context, by account.Actor, f control.Filter) (control.RoomPage, error)
}

// ExpiringToken is a connector's token that is about to expire or has expired.
type ExpiringToken struct {
	Name    string
	Expires time.Time
	When    string // time left, such as "in 13 days"; empty: it has expired
	Next    string // URL of the page that makes its successor
}

// Options configures the pages.
type Options struct {
	Sites *site.Sites
	Rooms Rooms
	// Tokens lists the expiring tokens of an organization's connectors.
	Tokens    func(ctx context.Context, by account.Actor) ([]ExpiringToken, error)
	PublicURL string // URL of the server
}

//go:embed templates
var files embed.FS

// handlers serves the pages.
type handlers struct {
	sites     *site.Sites
	rooms     Rooms
	tokens    func(ctx context.Context, by account.Actor) ([]ExpiringToken, error)
	publicURL string
}

// Part returns the pages.
func Part(o Options) shell.Part {
	h := &handlers{o.Sites, o.Rooms, o.Tokens, o.PublicURL}
	return shell.Part{
		Name: "sites", Templates: shell.Templates(files), Notices: notices,
		Routes: []shell.Route{
			shell.Get("/sites", account.Read, h.list),
			shell.Get("/new-site", account.Operate, h.create),
			shell.Post("/new-site", account.Operate, h.add),
			shell.Get("/sites/:site", account.Read, h.show),
			shell.Get("/sites/:site/rules", account.Operate, h.edit),
			shell.Post("/sites/:site/rules", account.Operate, h.change),
			shell.Get("/sites/:site/install", account.Read, h.install),
			shell.Get("/sites/:site/history", account.Read, h.history),
			shell.Get("/sites/:site/history/:version", account.Read, h.version),
			shell.Post("/sites/:site/history/:version/restore", account.Operate, h.restore),
			shell.Post("/sites/:site/delete", account.Operate, h.remove),
		},
	}
}

// notices are shown after an action.
var notices = map[string]string{
	"site-deleted":  "The site is deleted.",
	"site-made":     "The site is created. Now put a connector in front of it.",
	"site-restored": "The rules are restored as a new version. Connectors apply it within seconds.",
	"site-saved":    "The rules are saved. Connectors apply them within seconds.",
}

// sitesPage is the data of the list of sites.
type sitesPage struct {
	Sites  []site.Summary
	Others []connectorView // connectors with rules of no site, such as those in files
	Tokens []ExpiringToken
}

func (h *handlers) list(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	var p sitesPage
	var err error
	if p.Sites, err = h.sites.List(ctx, x.Actor); err != nil {
		return err
	}
	others, err := h.sites.Connectors(ctx, x.Actor, "")
	if err != nil {
		return err
	}
	p.Others = viewConnectors(others)
	if p.Tokens, err = h.tokens(ctx, x.Actor); err != nil {
		return err
	}
	return x.Page("sites", p)
}

// sitePage is the data of the page of a site.
type sitePage struct {
	site.Site
	Lines      []ruleLine
	Doubts     []phrase
	Warnings   []siteWarning
	InRules    []siteRoom
	Connectors []connectorView
	Tokens     []ExpiringToken
	Check      siteCheck
}

// siteWarning is a possible mistake.
type siteWarning struct {
	site.Warning
	Slug string // slug of the room whose settings may need a change; empty: none
}

// siteRoom is a room that rules name, or can name.
type siteRoom struct {
	Name    string // name in the rules
	URL     string
	Slug    string // empty: not a room of this organization and server
	Title   string
	State   format.Badge
	Mode    format.Badge
	IsGated bool // the room is a safety net
	Gate    format.Badge
	Failure string
	Present present
	Spared  string // requests that would have waited if it were not off; empty: unknown
	InLine  uint64
	IsOver  bool
}

func (h *handlers) show(x *shell.Request) error {
	ctx, cancel := x.Wait()
	defer cancel()
	s, err := h.sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := sitePage{Site: s}
	if read, err := rules.Parse(s.Rules); err == nil { // otherwise a warning names the problem
		p.Lines, p.Doubts = ruleLines(read), doubts(read)
		if p.InRules, err = h.roomsIn(ctx, x, read); err != nil {
			return err
		}
	}
	warnings, err := h.sites.Warnings(ctx, s)
	if err != nil {
		return err
	}
	p.Warnings = withSlugs(warnings, p.InRules)
	connectors, err := h.sites.Connectors(ctx, x.Actor, s.Name)
	if err != nil {
		return err
	}
	p.Connectors = viewConnectors(connectors)
	for i := range p.InRules {
		p.InRules[i].Spared = wouldHaveWaited(connectors, p.InRules[i].Name, x.Now())
	}
	if p.Tokens, err = h.tokens(ctx, x.Actor); err != nil {
		return err
	}
	p.Check = newSiteCheck(s.Rules, format.Clean(x.QueryParam("urls")), x.Now())
	return x.Page("site", p)
}

// withSlugs adds the rooms of warnings.
func withSlugs(warnings []site.Warning, rooms []siteRoom) (list []siteWarning) {
	for _, w := range warnings {
		view := siteWarning{Warning: w}
		i := slices.IndexFunc(rooms, func(r siteRoom) bool { return "rooms."+r.Name == w.Field && !r.IsOver })
		if i >= 0 {
			view.Slug = rooms[i].Slug
		}
		list = append(list, view)
	}
	return list
}

// gateBadges are the badges of gates.
var gateBadges = map[room.Gate]format.Badge{
	room.GateNone: format.Warn("no connector has reported"),
	room.GateOpen: format.Good("gate open"),
	room.GateShut: format.Warn("gate shut"),
}

// roomsIn returns the rooms that rules name, with their current state.
func (h *handlers) roomsIn(ctx context.Context, x *shell.Request, s *rules.Site) (list []siteRoom, err error) {
	for name, r := range s.Rooms {
		view := siteRoom{
			Name: name, URL: r.URL, Mode: modeWords[r.Mode], IsGated: r.Mode == rules.SafetyNet,
			Failure: failureWords(r.Failure), Present: presentOf(r, roomState{}, x.Now()),
		}
		found, err := h.rooms.Room(ctx, x.Actor, roomName(r.URL))
		switch {
		case errors.Is(err, room.ErrNotFound):
		case errors.Is(err, room.ErrRegressed), errors.Is(err, room.ErrAbandoned):
			view.Slug, view.Title = roomName(r.URL), roomName(r.URL)
			view.State, view.IsOver = format.Phase(room.PhaseStopped), errors.Is(err, room.ErrAbandoned)
		case err != nil:
			return nil, err
		case found.URL == r.URL:
			snapshot := found.Snapshot()
			phase := snapshot.Phase(found.Now())
			view.Gate, view.Present = gateBadges[snapshot.Gate],
				presentOf(r, roomState{snapshot, found.IsFull()}, found.Now())
			view.Slug, view.Title, view.State = found.Slug, snapshot.Title, format.Phase(phase)
			view.InLine, view.IsOver = snapshot.Counts.Unsettled(), snapshot.Ended
		}
		list = append(list, view)
	}
	slices.SortFunc(list, func(a, b siteRoom) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// roomChoices lists the rooms that rules can name, newest first, including the one that they name now.
func (h *handlers) roomChoices(ctx context.Context, x *shell.Request, named string) (list []siteRoom, err error) {
	page, err := h.rooms.List(ctx, x.Actor, control.Filter{Max: control.MaxPage})
	if err != nil {
		return nil, err
	}
	isThere := named == ""
	for _, r := range page.List {
		if r.Phase == room.PhaseEnded && r.URL != named || r.RehearsalOf != nil {
			continue
		}
		isThere = isThere || r.URL == named
		list = append(list, siteRoom{URL: r.URL, Slug: r.Slug, Title: r.Title, State: format.Phase(r.Phase)})
	}
	if !isThere {
		list = append(list, siteRoom{URL: named, Title: named})
	}
	return list, nil
}

// connectorView is a connector in a table.
type connectorView struct {
	site.Connector
	Short  string // beginning of its id
	Counts []countView
}

// countView is a count of a connector.
type countView struct {
	Name  string
	Value uint64
}

// countOrder is the order in which the known counts are shown.
var countOrder = []string{
	"passed", "queued", "bypassed", "observed", "started", "turned", "crowded", "redeemed", "refused", "blocked",
	"unavailable", "failed_open", "copied", "released", "touches", "reports", "dropped", "panics",
}

// countWords describe counts whose names are not self-explanatory.
var countWords = map[string]string{
	"passed": "passed with a session", "queued": "sent to a room", "bypassed": "needed no pass",
	"observed": "would have waited for a room that is off", "started": "let in by an open gate",
	"turned":   "sent to a room although the gate was open",
	"crowded":  "sent to a room although the gate was open: too many from one network",
	"redeemed": "passes used up", "copied": "requests of sessions that too many clients share",
	"refused": "passes refused", "unavailable": "got the retry page",
	"failed_open": "let in while a room was out of reach", "released": "sessions ended by the site",
	"touches": "sessions extended",
	"dropped": "lost touches and releases", "panics": "internal errors of the connector", "reports": "reports",
}

func viewConnectors(list []site.Connector) (views []connectorView) {
	for _, one := range list {
		v := connectorView{Connector: one, Short: one.ID[:min(6, len(one.ID))]}
		for name, value := range one.Counts {
			v.Counts = append(v.Counts, countView{name, value})
		}
		slices.SortFunc(v.Counts, func(a, b countView) int {
			if order := countRank(a.Name) - countRank(b.Name); order != 0 {
				return order
			}
			return strings.Compare(a.Name, b.Name)
		})
		for i, n := range v.Counts {
			v.Counts[i].Name = wordsOfCount(n.Name)
		}
		views = append(views, v)
	}
	return views
}

func wordsOfCount(name string) string {
	if words, ok := countWords[name]; ok {
		return words
	}
	if room, ok := strings.CutPrefix(name, observedHour); ok {
		return "would have waited for " + strings.ReplaceAll(room, "_", "-") + " in the last hour"
	}
	return strings.ReplaceAll(name, "_", " ")
}

func countRank(name string) int {
	if i := slices.Index(countOrder, name); i >= 0 {
		return i
	}
	return len(countOrder)
}

// siteCheck is the result of checking addresses against rules.
type siteCheck struct {
	URLs     string // addresses as typed, one per line
	Findings []findingView
	Problem  string
}

// findingView is the result for one address.
type findingView struct {
	rules.Finding
	Mark format.Badge
	Why  string // a sentence; empty: see the warnings
}

// IsLong reports whether the warnings are folded.
func (f findingView) IsLong() bool { return len(f.Warnings) > 4 }

// IsKept reports whether the rules keep visitors from the address.
func (f findingView) IsKept() bool {
	return f.Decision.Outcome == rules.Queue || f.Decision.Outcome == rules.Shut
}

// outcomeMarks are the badges of decisions.
var outcomeMarks = map[rules.Outcome]format.Badge{
	rules.Bypass: marksBypass, rules.Queue: marksQueue, rules.Shut: marksShut, rules.Block: marksBlock,
}

// newSiteCheck checks addresses. Problems of the document are shown elsewhere.
func newSiteCheck(document []byte, urls string, now time.Time) siteCheck {
	c := siteCheck{URLs: urls}
	list := lined(urls, strings.TrimSpace)
	if len(list) == 0 {
		return c
	}
	for i, one := range list {
		if !strings.Contains(one, "://") {
			list[i] = "https://" + one
		}
	}
	found, err := site.Check(document, list, now)
	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		c.Problem = wrong.Problems[0].Detail
		for i, one := range list {
			if wrong.Problems[0].Field == fmt.Sprintf("urls[%d]", i) {
				c.Problem = one + " " + c.Problem
			}
		}
		return c
	}
	for _, f := range found {
		view := findingView{Finding: f, Mark: outcomeMarks[f.Decision.Outcome], Why: "Rule " + f.Decision.Rule +
			" decides."}
		switch rule := f.Decision.Rule; {
		case rule == rules.NoRule:
			view.Why = ""
		case rule == rules.WrongHost:
			view.Why = "Its host does not belong to the site."
		case rule == rules.Malformed:
			view.Why = "It is not a valid address."
		case strings.HasPrefix(rule, "default:"):
			view.Why = "A default rule decides: " + strings.TrimPrefix(rule, "default:") + "."
		}
		if f.Decision.Room != "" && f.Decision.Outcome != rules.Bypass {
			view.Mark.Word += " for " + f.Decision.Room
		}
		c.Findings = append(c.Findings, view)
	}
	return c
}

func (h *handlers) remove(x *shell.Request) error {
	name := x.Param("site")
	ctx, cancel := x.Wait()
	defer cancel()
	s, err := h.sites.Site(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	if !x.IsConfirmed() {
		return x.Confirm(shell.Ask("Delete the site "+s.Name+"?", "Delete the site",
			"Its rules and their history are deleted.",
			"Running connectors keep their rules. A connector that restarts needs its stored copy of them.",
		).Dangerous(), "/sites/"+s.Name)
	}
	if err := h.sites.Delete(ctx, x.Actor, name); err != nil {
		return err
	}
	return x.Done("/sites", "site-deleted")
}
