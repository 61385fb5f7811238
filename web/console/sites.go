package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
)

// siteRoutes are those of sites: what rooms stand in front of.
func (c *Console) siteRoutes() []route {
	if c.Sites == nil {
		return nil
	}
	return []route{
		{GET, "/sites", account.Read, c.listSites},
		{GET, "/new-site", account.Operate, c.newSite},
		{POST, "/new-site", account.Operate, c.createSite},
		{GET, "/sites/:site", account.Read, c.showSite},
		{GET, "/sites/:site/rules", account.Operate, c.showRules},
		{POST, "/sites/:site/rules", account.Operate, c.changeRules},
		{GET, "/sites/:site/install", account.Read, c.showInstall},
		{GET, "/sites/:site/history", account.Read, c.showSiteHistory},
		{GET, "/sites/:site/history/:version", account.Read, c.showVersion},
		{POST, "/sites/:site/history/:version/restore", account.Operate, c.restoreRules},
		{POST, "/sites/:site/delete", account.Operate, c.deleteSite},
	}
}

// sitesPage is what the list shows.
type sitesPage struct {
	Sites  []sites.Summary
	Others []connectorView // that go by rules of no site, such as those in files
	Tokens []endingToken
}

func (c *Console) listSites(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	var p sitesPage
	var err error
	if p.Sites, err = c.Sites.List(ctx, x.Actor); err != nil {
		return err
	}
	others, err := c.Sites.Connectors(ctx, x.Actor, "")
	if err != nil {
		return err
	}
	p.Others = viewConnectors(others)
	if p.Tokens, err = c.endingTokens(ctx, x.Actor); err != nil {
		return err
	}
	return x.page("sites", p)
}

// sitePage is what the page of a site shows.
type sitePage struct {
	sites.Site
	Lines      []ruleLine
	Doubts     []phrase
	Warnings   []siteWarning
	InRules    []siteRoom
	Connectors []connectorView
	Tokens     []endingToken
	Check      siteCheck
}

// siteWarning is what may be a mistake with a room.
type siteWarning struct {
	sites.Warning
	Slug string // of the room, whose settings may be changed; empty: they cannot
}

// siteRoom is a room that rules name, or may name.
type siteRoom struct {
	Name    string // in the rules
	URL     string
	Slug    string // empty: it is none of this organization's, or not here
	Title   string
	State   badge
	Mode    badge
	IsGated bool // in mode safety-net
	Gate    badge
	Failure string
	Present present
	Spared  string // what would have waited if it were not off; empty: nobody knows
	InLine  uint64
	IsOver  bool
}

func (c *Console) showSite(x *request) error {
	ctx, cancel := x.wait()
	defer cancel()
	s, err := c.Sites.Site(ctx, x.Actor, x.Param("site"))
	if err != nil {
		return err
	}
	p := sitePage{Site: s}
	if read, err := rules.Parse(s.Rules); err == nil { // else a warning says why not
		p.Lines, p.Doubts = ruleLines(read), doubts(read)
		if p.InRules, err = c.roomsIn(ctx, x, read); err != nil {
			return err
		}
	}
	warnings, err := c.Sites.Warnings(ctx, s)
	if err != nil {
		return err
	}
	p.Warnings = withSlugs(warnings, p.InRules)
	connectors, err := c.Sites.Connectors(ctx, x.Actor, s.Name)
	if err != nil {
		return err
	}
	p.Connectors = viewConnectors(connectors)
	for i := range p.InRules {
		p.InRules[i].Spared = wouldHaveWaited(connectors, p.InRules[i].Name, c.Now())
	}
	if p.Tokens, err = c.endingTokens(ctx, x.Actor); err != nil {
		return err
	}
	p.Check = newSiteCheck(s.Rules, cleanText(x.QueryParam("urls")), c.Now())
	return x.page("site", p)
}

// withSlugs finds the rooms that warnings are about.
func withSlugs(warnings []sites.Warning, rooms []siteRoom) (list []siteWarning) {
	for _, w := range warnings {
		view := siteWarning{Warning: w}
		if i := slices.IndexFunc(rooms, func(r siteRoom) bool { return "rooms."+r.Name == w.Field && !r.IsOver }); i >= 0 {
			view.Slug = rooms[i].Slug
		}
		list = append(list, view)
	}
	return list
}

// gateBadges are the states of gates in words.
var gateBadges = map[room.Gate]badge{
	room.GateNone: format.Warn("no connector has reported"),
	room.GateOpen: format.Good("gate open"),
	room.GateShut: format.Warn("gate shut"),
}

// roomsIn are the rooms of rules, as they are now.
func (c *Console) roomsIn(ctx context.Context, x *request, s *rules.Site) (list []siteRoom, err error) {
	for name, r := range s.Rooms {
		view := siteRoom{Name: name, URL: r.URL, Mode: modeWords[r.Mode], IsGated: r.Mode == rules.SafetyNet, Failure: failureWords(r.Failure), Present: presentOf(r, nil, false, c.Now())}
		found, err := c.Control.Room(ctx, x.Actor, roomName(r.URL))
		switch {
		case errors.Is(err, room.ErrNotFound):
		case errors.Is(err, room.ErrRegressed), errors.Is(err, room.ErrAbandoned):
			view.Slug, view.Title, view.State, view.IsOver = roomName(r.URL), roomName(r.URL), format.Phase(room.PhaseStopped), errors.Is(err, room.ErrAbandoned)
		case err != nil:
			return nil, err
		case found.URL == r.URL:
			snapshot := found.Snapshot()
			phase := snapshot.Phase(found.Now())
			view.Gate, view.Present = gateBadges[snapshot.Gate], presentOf(r, snapshot, found.IsFull(), found.Now())
			view.Slug, view.Title, view.State, view.InLine, view.IsOver = found.Slug, snapshot.Title, format.Phase(phase), inLine(snapshot.Counts), snapshot.Ended
		}
		list = append(list, view)
	}
	slices.SortFunc(list, func(a, b siteRoom) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// roomChoices are the rooms that rules can name, the newest first, and one that
// they name already.
func (c *Console) roomChoices(ctx context.Context, x *request, named string) (list []siteRoom, err error) {
	page, err := c.Control.List(ctx, x.Actor, control.Filter{Max: control.MaxPage})
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

// connectorView is a connector as pages show it.
type connectorView struct {
	sites.Connector
	Short  string // of its id
	Counts []countView
}

// countView is one of the things that a connector counts.
type countView struct {
	Name  string
	Value uint64
}

// countOrder is what connectors count, as far as it is known here, the most
// telling first.
var countOrder = []string{"passed", "queued", "bypassed", "observed", "started", "turned", "crowded", "redeemed", "refused", "blocked", "unavailable", "failed_open", "copied", "released", "touches", "reports", "dropped", "panics"}

// countWords say what is meant, where the name does not.
var countWords = map[string]string{
	"passed": "passed with a session", "queued": "led to a room", "bypassed": "needed no pass", "observed": "would have waited for a room that is off", "started": "let in by an open gate",
	"turned": "led to a room beside an open gate", "crowded": "led to a room beside an open gate, as many of their network came", "redeemed": "passes used up", "copied": "requests with a session that too many clients share", "refused": "passes refused", "unavailable": "asked to come back",
	"failed_open": "let in as a room was out of reach", "released": "sessions ended by the site", "touches": "sessions told to go on",
	"dropped": "lost touches and releases", "panics": "faults of the connector", "reports": "reports",
}

func viewConnectors(list []sites.Connector) (views []connectorView) {
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

// siteCheck is what rules do with some addresses.
type siteCheck struct {
	URLs     string // one a line, as they were typed
	Findings []findingView
	Problem  string
}

// findingView is what rules do with one address.
type findingView struct {
	rules.Finding
	Mark badge
	Why  string // a sentence; empty: the warnings say it
}

// IsLong tells whether there is so much to warn of that it is folded.
func (f findingView) IsLong() bool { return len(f.Warnings) > 4 }

// IsKept tells whether visitors do not simply get there.
func (f findingView) IsKept() bool {
	return f.Decision.Outcome == rules.Queue || f.Decision.Outcome == rules.Shut
}

// outcomeMarks are decisions in words.
var outcomeMarks = map[rules.Outcome]badge{rules.Bypass: marksBypass, rules.Queue: marksQueue, rules.Shut: marksShut, rules.Block: marksBlock}

// newSiteCheck looks at addresses; what is wrong with the document stands elsewhere.
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
	found, err := sites.Check(document, list, now)
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
		view := findingView{Finding: f, Mark: outcomeMarks[f.Decision.Outcome], Why: "Rule " + f.Decision.Rule + " decides."}
		switch rule := f.Decision.Rule; {
		case rule == rules.NoRule:
			view.Why = ""
		case rule == rules.WrongHost:
			view.Why = "Its host is none of the site's."
		case rule == rules.Malformed:
			view.Why = "It cannot be read."
		case strings.HasPrefix(rule, "default:"):
			view.Why = "A shipped rule decides: " + strings.TrimPrefix(rule, "default:") + "."
		}
		if f.Decision.Room != "" && f.Decision.Outcome != rules.Bypass {
			view.Mark.Word += " for " + f.Decision.Room
		}
		c.Findings = append(c.Findings, view)
	}
	return c
}

func (c *Console) deleteSite(x *request) error {
	name := x.Param("site")
	ctx, cancel := x.wait()
	defer cancel()
	s, err := c.Sites.Site(ctx, x.Actor, name)
	if err != nil {
		return err
	}
	if !x.isConfirmed() {
		return x.confirm(plainQuestion("Delete the site "+s.Name+"?", "Delete the site", "Its rules and their history are deleted.", "Connectors that run keep their rules. A connector that starts again needs the rules it has stored.").Dangerous(), "/sites/"+s.Name)
	}
	if err := c.Sites.Delete(ctx, x.Actor, name); err != nil {
		return err
	}
	return x.done("/sites", "site-deleted")
}

// roomSites is what a room stands in front of.
type roomSites struct {
	Names  []string
	Slug   string // of the room
	MayAdd bool   // it can be put in front of one
}

// sitesOf finds the sites whose rules name a room.
func (c *Console) sitesOf(ctx context.Context, actor account.Actor, r *room.Room) (found roomSites, err error) {
	if c.Sites == nil {
		return found, nil
	}
	found.Slug, found.MayAdd = r.Slug, actor.May(account.Operate) && !r.Snapshot().Ended
	list, err := c.Sites.List(ctx, actor)
	for _, s := range list {
		if slices.Contains(s.Rooms, r.URL) {
			found.Names = append(found.Names, s.Name)
		}
	}
	return found, err
}
