package console

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	sites "github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/console/site/pgsite"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
)

// newSites returns sites whose rooms are those of d.
func newSites(t testing.TB, d *control.Rooms, pool *pgxpool.Pool) *sites.Sites {
	t.Helper()
	key, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return sites.New(sites.Options{
		Store: pgsite.NewStore(pool), Rooms: d.Rooms, Sealer: key, Activity: d.Activity,
		Slug: func(_ context.Context, org uuid.UUID) (string, error) {
			return map[uuid.UUID]string{account.MainOrg: "main", otherOrg: "other"}[org], nil
		},
	})
}

// addSite makes a site of somebody's organization, in front of a room.
func (s *site) addSite(who, name string, r *room.Room) sites.Site {
	s.Helper()
	document := fmt.Sprintf(`{"version": 1, "hosts": ["shop.example.com"], "rooms": {"sale": {"url": %q}}, "rules": [
  {"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}
]}`, r.URL)
	made, err := s.Sites.Create(s.Context(), identities()[who].Actor, name, []byte(document))
	if err != nil {
		s.Fatal(err)
	}
	return made
}

// shopConfig is a room that leads visitors back to the site of these tests.
var shopConfig = room.Config{Slug: "sale", Title: "The sale", Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}}

// typed are the fields of the form for rules.
func typed(r *room.Room, more ...string) []string {
	return append([]string{"as", "form", "hosts", "https://Shop.example.com/", "room", r.URL, "scope", "paths", "paths", "/tickets", "mode", "always", "failure", "fail-open-after", "fail_open_after", "90 s"}, more...)
}

// only lists a form's fields with some of them replaced.
func only(fields []string, changes ...string) []string {
	out := append([]string{}, fields...)
	for i := 0; i < len(changes); i += 2 {
		found := false
		for j := 0; j < len(out); j += 2 {
			if out[j] == changes[i] {
				out[j+1], found = changes[i+1], true
			}
		}
		if !found {
			out = append(out, changes[i], changes[i+1])
		}
	}
	return out
}

// TestSiteStory makes a site by the form, changes it as JSON, puts the first
// rules back, and deletes it.
func TestSiteStory(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.get(viewer, "/console/sites").want(http.StatusOK).has("No sites yet", "An owner or operator adds them")
	r := s.create(owner, shopConfig)
	s.get(operator, "/console/rooms/sale").want(http.StatusOK).has(`href="/console/new-site?room=sale"`)
	for _, path := range []string{"/console/new-site?room=sale", "/console/new-site"} { // the only room need not be named
		s.get(operator, path).want(http.StatusOK).has(`<option value="`+r.URL+`" selected>The sale (sale)`, ">shop.example.com</textarea>")
	}

	s.post(operator, "/console/new-site", only(typed(r), "name", "shop", "do", "save")...).leadsTo("/console/sites/shop/install?done=site-made")
	page := s.get(viewer, "/console/sites/shop").want(http.StatusOK)
	page.has("Paths below <code>/tickets</code>: wait in line for <code>sale</code>", "Hosts other than <code>shop.example.com</code>: nobody gets there",
		"Everything else: passes", "The sale", "No connector has reported", "after 1 min 30 s everybody gets in").lacks("Change the rules", "Delete the site", "What may be a mistake")
	s.get(viewer, "/console/rooms/sale").has(`<a href="/console/sites/shop">shop</a>`).lacks("Put it in front")
	s.get(operator, "/console/sites").has(`href="/console/sites/shop"`, "none connected")

	s.get(operator, "/console/sites/shop/rules").want(http.StatusOK).has(`name="version" value="1"`, `name="as" value="form"`, `name="fail_open_after" type="text" value="1 min 30 s"`, ">/tickets</textarea>")
	document := s.documentOf(operator, "shop")
	changed := strings.Replace(document, `"/tickets"`, `"/members"`, 1)
	s.post(operator, "/console/sites/shop/rules", "as", "json", "version", "1", "document", changed, "do", "save").leadsTo("/console/sites/shop?done=site-saved")
	s.get(viewer, "/console/sites/shop").has("Paths below <code>/members</code>", "Rules, version 2")

	s.get(viewer, "/console/sites/shop/history").want(http.StatusOK).has("Version 2", "Version 1", "operator@example.com", "in force")
	s.get(viewer, "/console/sites/shop/history/2").has("<ins>", "<del>", "/members").lacks("Restore these rules")
	s.get(viewer, "/console/sites/shop/history/1").has("What restoring them would change").lacks(">Restore these rules<")
	s.post(operator, "/console/sites/shop/history/1/restore", "seen", "2").want(http.StatusOK).has("data-question", `name="seen" value="2"`)
	s.post(operator, "/console/sites/shop/history/1/restore", "seen", "1", "confirmed", "1").want(http.StatusConflict)
	s.post(operator, "/console/sites/shop/history/1/restore", "seen", "2", "confirmed", "1").leadsTo("/console/sites/shop?done=site-restored")
	if got := s.documentOf(operator, "shop"); got != document {
		t.Errorf("put back is\n%s\nand was\n%s", got, document)
	}

	s.post(operator, "/console/sites/shop/delete").want(http.StatusOK).has("data-question", "Delete the site shop")
	s.post(operator, "/console/sites/shop/delete", "confirmed", "1").leadsTo("/console/sites?done=site-deleted")
	s.get(owner, "/console/sites/shop").want(http.StatusNotFound)
	s.get(owner, "/console/acts").has("made a site", "changed the rules of a site", "put earlier rules of a site back", "deleted a site")
	s.create(owner, room.Config{Slug: "gala"})
	s.get(operator, "/console/new-site").want(http.StatusOK).has("Choose a room", "(gala)").lacks(" selected>", "shop.example.com</textarea>")
	s.addSite(owner, "other", r)
	s.get(viewer, "/console/acts?object=site/other").has("made a site", `<a href="/console/acts?object=site/other">other</a>`).lacks("put earlier rules")
}

var documentField = regexp.MustCompile(`(?s)<textarea id="f-document"[^>]*>\n(.*?)</textarea>`)

// documentOf is what the editor shows.
func (s *site) documentOf(who, name string) string {
	s.Helper()
	found := documentField.FindStringSubmatch(s.get(who, "/console/sites/"+name+"/rules?as=json").want(http.StatusOK).body)
	if found == nil {
		s.Fatal("the page has no editor")
	}
	return html.UnescapeString(found[1])
}

// TestSiteProblems: what is wrong stands beside what is wrong, and nothing is lost.
func TestSiteProblems(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, shopConfig)
	theirs := s.create(stranger, room.Config{Slug: "theirs"})
	for name, test := range map[string]struct {
		change []string
		field  string
		says   string
	}{
		"no name":         {[]string{"name", ""}, "name", "must be 1 to 63"},
		"bad name":        {[]string{"name", "A shop"}, "name", "must be 1 to 63"},
		"no hosts":        {[]string{"hosts", " \n"}, "hosts", "must name the host"},
		"bad host":        {[]string{"hosts", "shop example"}, "hosts", "shop example must be a host name"},
		"no room":         {[]string{"room", ""}, "room", "must be one of your rooms"},
		"their room":      {[]string{"room", theirs.URL}, "room", "must be the URL of a room of this organization"},
		"no paths":        {[]string{"paths", ""}, "paths", "must name what waits"},
		"bad path":        {[]string{"paths", "/a\n/b/../c"}, "paths", "/b/../c must be a path"},
		"both":            {[]string{"exceptions", "/tickets"}, "exceptions", "cannot both wait"},
		"bad exception":   {[]string{"exceptions", "pay"}, "exceptions", "pay must be a path"},
		"no time":         {[]string{"mode", "scheduled"}, "mode", "needs from, until"},
		"odd time":        {[]string{"mode", "scheduled", "from", "soon"}, "from", "must be a time"},
		"times turned":    {[]string{"mode", "scheduled", "from", "2030-01-02T00:00", "until", "2030-01-01T00:00"}, "until", "must be after from"},
		"unknown mode":    {[]string{"mode", "sometimes"}, "mode", "must be always"},
		"unknown failure": {[]string{"failure", "panic"}, "failure", "must be"},
		"no length":       {[]string{"fail_open_after", "a while"}, "fail_open_after", "must be a length"},
		"too long":        {[]string{"fail_open_after", "25 h"}, "fail_open_after", "must be a length"},
	} {
		for _, do := range []string{"save", "check"} {
			if do == "check" && (test.field == "name" || name == "their room") {
				continue
			}
			a := s.post(operator, "/console/new-site", only(only(typed(r), "name", "shop", "urls", "https://shop.example.com/kept", "do", do), test.change...)...)
			found := regexp.MustCompile(`id="e-` + test.field + `">([^<]*)<`).FindStringSubmatch(a.want(http.StatusBadRequest).body)
			if found == nil || !strings.Contains(html.UnescapeString(found[1]), test.says) {
				t.Errorf("%s, %s: %q beside %s", name, do, found, test.field)
			}
			a.has("https://shop.example.com/kept")
		}
	}
	s.addSite(owner, "taken", r)
	s.post(operator, "/console/new-site", only(typed(r), "name", "taken", "do", "save")...).want(http.StatusBadRequest).has("is taken")
	if list, err := s.Sites.List(t.Context(), identities()[owner].Actor); err != nil || len(list) != 1 {
		t.Errorf("%d sites, %v", len(list), err)
	}
}

// TestSiteJSONProblems names the lines of what is wrong.
func TestSiteJSONProblems(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	s.create(owner, shopConfig)
	for name, test := range map[string]struct {
		document string
		line     int
		says     string
	}{
		"no JSON":        {"{\n  \"version\": 1,\n  \"hosts\": [}\n}", 3, "must be a JSON object"},
		"cut off":        {"{\n  \"version\": 1,", 2, "must be a JSON object"},
		"wrong type":     {"{\n  \"version\": 1,\n  \"hosts\": \"x\"\n}", 3, "must be a JSON object"},
		"unknown member": {"{\n  \"version\": 1,\n  \"rules\": [],\n  \"hots\": []\n}", 4, "is not a known member here"},
		"no such room":   {"{\n  \"version\": 1,\n  \"rules\": [\n    {\"name\": \"a\",\n     \"action\": \"queue b\"}\n  ]\n}", 5, "must name one of the rooms"},
		"no name":        {"{\n  \"version\": 1,\n  \"rules\": [\n    {\n     \"action\": \"block\"}\n  ]\n}", 4, "must be present and unique"},
		"twice":          {"{\n  \"version\": 1,\n  \"version\": 1\n}", 3, "must be there once"},
		"no version":     {"{\n}", 0, "must be 1"},
		"markup":         {"{\n  \"version\": 1,\n  \"rules\": [\n{\"name\": \"<script>\", \"action\": \"</textarea><script>alert(1)</script>\"}]}", 4, "must be"},
	} {
		a := s.post(operator, "/console/new-site", "as", "json", "name", "shop", "document", strings.ReplaceAll(test.document, "\n", "\r\n"), "do", "save").want(http.StatusBadRequest)
		a.has(test.says, html.EscapeString(test.document[strings.IndexByte(test.document, '\n')+1:])).lacks("<script>alert")
		line := fmt.Sprintf(`data-line="%d"`, test.line)
		if test.line > 0 != strings.Contains(a.body, "data-line=") || test.line > 0 && !strings.Contains(a.body, line) {
			t.Errorf("%s: not at line %d:\n%s", name, test.line, a.body)
		}
	}
}

// TestSitePreview tries addresses without saving anything.
func TestSitePreview(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, shopConfig)
	check := only(typed(r), "do", "check", "urls", "shop.example.com/tickets/1\nhttps://shop.example.com/about\nhttps://other.example.com/")
	s.post(operator, "/console/new-site", check...).want(http.StatusOK).has(
		"waits for sale", "Rule wait /tickets decides.", "no rule matches it", "Its host is none of the site", "https://shop.example.com/en/tickets/1 is not protected", "Paths below <code>/tickets</code>")
	s.post(operator, "/console/new-site", only(check, "urls", "ftp://shop.example.com/")...).want(http.StatusOK).has("ftp://shop.example.com/ must be a URL")
	s.post(operator, "/console/new-site", only(check, "do", "json")...).want(http.StatusOK).has(`name="as" value="json"`, "&#34;fail-open-after 90s&#34;")
	s.addSite(owner, "shop", r)
	s.get(viewer, "/console/sites/shop?urls=shop.example.com%2Ftickets").want(http.StatusOK).has("waits for sale", "Rule tickets decides.")
	s.post(operator, "/console/sites/shop/rules", "as", "json", "version", "1", "do", "form", "document", `{"version": 1}`).want(http.StatusBadRequest).has("say more than the form can")
	if list, err := s.Sites.List(t.Context(), identities()[owner].Actor); err != nil || len(list) != 1 || list[0].Version != 1 {
		t.Errorf("sites %+v, %v", list, err)
	}
}

// TestSiteConflict: who saves rules that somebody else has changed is asked, with
// what differs.
func TestSiteConflict(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	made := s.addSite(owner, "shop", s.create(owner, shopConfig))
	mine := strings.Replace(string(made.Rules), "/tickets", "/mine", 1)
	theirs := strings.Replace(string(made.Rules), "/tickets", "/theirs", 1)
	save := func(document, version string) answer {
		return s.post(operator, "/console/sites/shop/rules", "as", "json", "do", "save", "version", version, "document", document)
	}
	save(theirs, "1").want(http.StatusSeeOther)
	a := save(mine, "1").want(http.StatusConflict).has("changed meanwhile", "operator@example.com", "/theirs", "/mine", `name="version" value="2"`)
	fields := regexp.MustCompile(`name="([a-z_]+)" value="([^"]*)"`).FindAllStringSubmatch(a.body, -1)
	var again []string
	for _, f := range fields {
		again = append(again, f[1], html.UnescapeString(f[2]))
	}
	s.post(operator, "/console/sites/shop/rules", again...).leadsTo("/console/sites/shop?done=site-saved")
	if now, err := s.Sites.Site(t.Context(), identities()[owner].Actor, "shop"); err != nil || now.Version != 3 || !strings.Contains(string(now.Rules), "/mine") {
		t.Errorf("version %d, %v: %s", now.Version, err, now.Rules)
	}
	for _, version := range []string{"", "0", "-1", "x", "99999999999999999999"} {
		save(mine, version).want(http.StatusBadRequest)
	}
	save(mine, "7").want(http.StatusConflict)
}

// TestSiteConnectors shows who reports, and how to install one.
func TestSiteConnectors(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	made := s.addSite(owner, "shop", s.create(owner, shopConfig))
	key, err := s.Sites.Key(t.Context(), identities()[owner].Actor)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append(installKinds, installKind{Name: "unknown"}) {
		a := s.get(operator, "/console/sites/shop/install?with="+kind.Name).want(http.StatusOK).lacks("%!", "scope=connect")
		a.has(strings.ReplaceAll(key, "+", "&#43;"), s.PublicURL+"/v1/sites/shop/rules", "None has reported yet")
	}
	s.get(owner, "/console/sites/shop/install").has("/console/tokens?scope=connect&amp;name=connector+of+shop")
	report := func(n byte, site string, version uint64, counts map[string]uint64) {
		node := sites.Node{ID: base64.RawURLEncoding.EncodeToString(append(make([]byte, 15), n)), Site: site, RulesVersion: version, Kind: "proxy", Version: "1.2", Counts: counts}
		if err := s.Sites.Seen(t.Context(), account.MainOrg, node); err != nil {
			t.Fatal(err)
		}
	}
	report(1, "shop", 1, map[string]uint64{"passed": 1234, "odd_one": 7, "panics": 0})
	report(2, "", 0, nil)
	changed := strings.Replace(string(made.Rules), "/tickets", "/members", 1)
	s.get(viewer, "/console/sites/shop").has("connected", "1,234 passed with a session", "odd one", "proxy", "1.2", "in force").lacks("behind")
	s.post(operator, "/console/sites/shop/rules", "as", "json", "version", "1", "document", changed).want(http.StatusSeeOther)
	s.get(viewer, "/console/sites/shop").has(`<span class="badge warn">behind</span> version 1`)
	s.get(viewer, "/console/sites").has("1 connected", "1 behind", "Connectors with rules of their own")
	s.get(viewer, "/console/sites/shop/install").has("1 reported within a day")
}

// TestSiteOff shows what would have waited for rooms that are off.
func TestSiteOff(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	rules := `{"version": 1, "rooms": {"sale": {"url": "https://far.example.com/r/a", "mode": "off"}, "spring-drop": {"url": "https://far.example.com/r/b", "mode": "off"},
		"quiet": {"url": "https://far.example.com/r/c", "mode": "off"}, "new": {"url": "https://far.example.com/r/d", "mode": "off"}}, "rules": [{"name": "all", "action": "queue sale"}]}`
	if _, err := s.Sites.Create(t.Context(), identities()[owner].Actor, "shop", []byte(rules)); err != nil {
		t.Fatal(err)
	}
	s.get(viewer, "/console/sites/shop").want(http.StatusOK).lacks("would have waited")
	for i, counts := range []map[string]uint64{
		{"observed": 5000, "observed_hour_sale": 1230, "observed_hour_spring_drop": 1, "observed_hour_quiet": 0},
		{"observed_hour_sale": 4},
	} {
		node := sites.Node{ID: base64.RawURLEncoding.EncodeToString(append(make([]byte, 15), byte(i))), Site: "shop", RulesVersion: 1, Kind: "proxy", Version: "1.2", Counts: counts}
		if err := s.Sites.Seen(t.Context(), account.MainOrg, node); err != nil {
			t.Fatal(err)
		}
	}
	a := s.get(viewer, "/console/sites/shop")
	a.has("off</span> 1,234 requests of the last hour would have waited", "off</span> one request of the last hour would have waited", "off</span> no request of the last hour would have waited")
	a.has("would have waited for a room that is off", "would have waited for spring-drop in the last hour")
	if n := strings.Count(a.body, "of the last hour would have waited"); n != 3 {
		t.Errorf("%d rooms, and of new nobody has counted anything", n)
	}
	if text := wouldHaveWaited([]sites.Connector{{Node: sites.Node{Counts: map[string]uint64{"observed_hour_sale": 7}}}}, "sale", time.Now()); text != "" {
		t.Errorf("long ago: %q", text)
	}
}

// TestSiteWarnings says what may be a mistake.
func TestSiteWarnings(t *testing.T) {
	t.Parallel()
	s := newConsole(t)
	r := s.create(owner, room.Config{Slug: "sale", Settings: room.Settings{Targets: []string{"https://other.example.com/"}}})
	s.addSite(owner, "shop", r)
	s.get(viewer, "/console/sites/shop").want(http.StatusOK).has("What may be a mistake", "does not send visitors back to shop.example.com").lacks("Settings of the room")
	s.get(operator, "/console/sites/shop").has(`<a href="/console/rooms/sale/settings">Settings of the room</a>`)
	s.addSite(owner, "new", r) // no name of a site is that of another page
	s.get(viewer, "/console/sites/new").want(http.StatusOK).has("Paths below")
	net := fmt.Sprintf(`{"version": 1, "rooms": {"sale": {"url": %q, "mode": "safety-net"}, "far": {"url": "https://far.example.com/r/x"}}, "rules": [
		{"name": "friends", "when": {"header": {"x-friend": {"equals": "1"}}}, "action": "bypass"}, {"name": "all", "action": "queue sale"}]}`, r.URL)
	if _, err := s.Sites.Create(t.Context(), identities()[owner].Actor, "net", []byte(net)); err != nil {
		t.Fatal(err)
	}
	s.get(viewer, "/console/sites/net").want(http.StatusOK).has("safety net", `<span class="badge warn">no connector has reported</span> <a href="/console/rooms/sale">Gate and figures`, "visitors can say that too", "is on another server", "not a room of this organization", "by the shipped rules",
		`<td data-label="Right now"><span><span class="badge good">line</span> they wait in line; the gate is shut until a connector reports`, "they are led to the room, which is not here")
}

// TestWithoutSites: what is nil leaves its pages out.
func TestWithoutSites(t *testing.T) {
	t.Parallel()
	s := newConsole(t, func(o *Options) { o.Sites = nil })
	s.get(owner, "/console/sites").want(http.StatusNotFound)
	s.create(owner, shopConfig)
	s.get(owner, "/console/rooms/sale").want(http.StatusOK).lacks("/console/sites/")
}

// TestSiteTokens: the link on the page of a site proposes a name and a scope,
// also after the person had to confirm who it is.
func TestSiteTokens(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	v := w.setup()
	const link = "/console/tokens?scope=connect&name=connector+of+shop"
	chosen := `value="connect" checked`
	v.get(link).want(http.StatusOK).has(`value="connector of shop"`, chosen).lacks(`value="admin" checked`)
	v.get("/console/tokens").want(http.StatusOK).lacks("checked")
	w.pass(account.ConfirmedLife)
	v.get(link).want(http.StatusOK).has("/console/confirm?next=%2fconsole%2ftokens%3fscope%3dconnect")
}

// TestEndingTokens: the pages of sites and of tokens say what ends soon, and make
// the next one of the same name and scopes.
func TestEndingTokens(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	server := account.ServerActor(account.MainOrg)
	use := func(text string) {
		t.Helper()
		if _, err := w.accounts.Tokens.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	give := func(name string, scopes account.Scope, days time.Duration) string {
		t.Helper()
		text, _, err := w.accounts.Tokens.Make(t.Context(), server, account.NewToken{Name: name, Scopes: scopes, Life: days * 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		use(text)
		return text
	}
	proxy := give("the <proxy>", account.Connect, 30)
	give("gone", account.Operate, 22)
	give("backend", account.Read|account.Pull, 30)
	give("later", account.Connect, 90)
	if _, err := w.Sites.Create(t.Context(), server, "shop", []byte(`{"version": 1, "rooms": {"sale": {"url": "https://far.example.com/r/sale"}}}`)); err != nil {
		t.Fatal(err)
	}
	w.pass(25 * 24 * time.Hour)
	use(proxy)
	v := w.setup()
	const next = `href="/console/tokens?days=30&amp;name=the&#43;%3Cproxy%3E&amp;scope=connect#make"`
	viewer, pages := v.invite("view@example.com", "viewer"), []string{"/console/sites", "/console/sites/shop"}
	for _, path := range pages {
		ends, ended := "The token <strong>the &lt;proxy&gt;</strong> ends in 4 days", "The token <strong>gone</strong> has ended"
		v.get(path).want(http.StatusOK).has("Tokens that end", ends, ended, next).lacks("backend", "later", "An owner makes")
		viewer.get(path).want(http.StatusOK).has(ends, ended, "An owner makes the next one.").lacks("Make the next one")
	}
	w.tenant("other").get("/console/sites").want(http.StatusOK).lacks("Tokens that end")
	list := v.get("/console/tokens").want(http.StatusOK).has(next, `<span class="badge warn">ends in 4 days</span>`, `<span class="badge bad">expired</span>`)
	if n := strings.Count(list.body, "Make the next one"); n != 3 {
		t.Errorf("%d tokens of four have a next one", n)
	}
	form := v.get("/console/tokens?days=30&name=the+%3Cproxy%3E&scope=connect&scope=read").want(http.StatusOK)
	form.has(`value="the &lt;proxy&gt;"`, `value="connect" checked`, `value="read" checked`, `<option value="30" selected>`).lacks(`value="admin" checked`)
	v.get("/console/tokens?days=31").has(`<option value="90" selected>`)
}
