package sites_test

import (
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console"
)

// shopConfig is a room that sends visitors back to the site of these tests.
var shopConfig = room.Config{Slug: "sale", Title: "The sale", Settings: room.Settings{Targets: []string{"https://shop.example.com/"}}}

// typed are the fields of the form for rules.
func typed(r *room.Room, more ...string) []string {
	return append([]string{"as", "form", "hosts", "https://Shop.example.com/", "room", r.URL, "scope", "paths", "paths", "/tickets", "mode", "always", "failure", "fail-open-after", "fail_open_after", "90 s"}, more...)
}

// only lists a form's fields, some of them replaced.
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

// TestSiteStory creates a site with the form, changes it as JSON, restores the first rules, and deletes it.
func TestSiteStory(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Get(consoletest.Viewer, "/console/sites").Want(http.StatusOK).Has("No sites yet", "Owners and operators can add them")
	r := s.Create(consoletest.Owner, shopConfig)
	s.Get(consoletest.Operator, "/console/rooms/sale").Want(http.StatusOK).Has(`href="/console/new-site?room=sale"`)
	for _, path := range []string{"/console/new-site?room=sale", "/console/new-site"} { // the only room need not be named
		s.Get(consoletest.Operator, path).Want(http.StatusOK).Has(`<option value="`+r.URL+`" selected>The sale (sale)`, ">shop.example.com</textarea>")
	}

	s.Post(consoletest.Operator, "/console/new-site", only(typed(r), "name", "shop", "do", "save")...).RedirectsTo("/console/sites/shop/install?done=site-made")
	page := s.Get(consoletest.Viewer, "/console/sites/shop").Want(http.StatusOK)
	page.Has("Paths below <code>/tickets</code>: wait in line for <code>sale</code>", "Hosts other than <code>shop.example.com</code>: blocked",
		"Everything else: passes", "The sale", "No connector has reported", "after 1 min 30 s everyone gets in").Lacks("Change the rules", "Delete the site", "Possible mistakes")
	s.Get(consoletest.Viewer, "/console/rooms/sale").Has(`<a href="/console/sites/shop">shop</a>`).Lacks("Put it in front")
	s.Get(consoletest.Operator, "/console/sites").Has(`href="/console/sites/shop"`, "none connected")

	s.Get(consoletest.Operator, "/console/sites/shop/rules").Want(http.StatusOK).Has(`name="version" value="1"`, `name="as" value="form"`, `name="fail_open_after" type="text" value="1 min 30 s"`, ">/tickets</textarea>")
	document := documentOf(s, consoletest.Operator, "shop")
	changed := strings.Replace(document, `"/tickets"`, `"/members"`, 1)
	s.Post(consoletest.Operator, "/console/sites/shop/rules", "as", "json", "version", "1", "document", changed, "do", "save").RedirectsTo("/console/sites/shop?done=site-saved")
	s.Get(consoletest.Viewer, "/console/sites/shop").Has("Paths below <code>/members</code>", "Rules, version 2")

	s.Get(consoletest.Viewer, "/console/sites/shop/history").Want(http.StatusOK).Has("Version 2", "Version 1", "operator@example.com", "current")
	s.Get(consoletest.Viewer, "/console/sites/shop/history/2").Has("<ins>", "<del>", "/members").Lacks("Restore these rules")
	s.Get(consoletest.Viewer, "/console/sites/shop/history/1").Has("What restoring it would change").Lacks(">Restore these rules<")
	s.Post(consoletest.Operator, "/console/sites/shop/history/1/restore", "seen", "2").Want(http.StatusOK).Has("data-question", `name="seen" value="2"`)
	s.Post(consoletest.Operator, "/console/sites/shop/history/1/restore", "seen", "1", "confirmed", "1").Want(http.StatusConflict)
	s.Post(consoletest.Operator, "/console/sites/shop/history/1/restore", "seen", "2", "confirmed", "1").RedirectsTo("/console/sites/shop?done=site-restored")
	if got := documentOf(s, consoletest.Operator, "shop"); got != document {
		t.Errorf("put back is\n%s\nand was\n%s", got, document)
	}

	s.Post(consoletest.Operator, "/console/sites/shop/delete").Want(http.StatusOK).Has("data-question", "Delete the site shop")
	s.Post(consoletest.Operator, "/console/sites/shop/delete", "confirmed", "1").RedirectsTo("/console/sites?done=site-deleted")
	s.Get(consoletest.Owner, "/console/sites/shop").Want(http.StatusNotFound)
	s.Get(consoletest.Owner, "/console/activity").Has("created a site", "changed the rules of a site", "restored earlier rules of a site", "deleted a site")
	s.Create(consoletest.Owner, room.Config{Slug: "gala"})
	s.Get(consoletest.Operator, "/console/new-site").Want(http.StatusOK).Has("Choose a room", "(gala)").Lacks(" selected>", "shop.example.com</textarea>")
	s.AddSite(consoletest.Owner, "other", r)
	s.Get(consoletest.Viewer, "/console/activity?object=site/other").Has("created a site", `<a href="/console/activity?object=site/other">other</a>`).Lacks("put earlier rules")
}

var documentField = regexp.MustCompile(`(?s)<textarea id="f-document"[^>]*>\n(.*?)</textarea>`)

// documentOf returns the text in the editor.
func documentOf(s *consoletest.Site, who, name string) string {
	s.Helper()
	found := documentField.FindStringSubmatch(s.Get(who, "/console/sites/"+name+"/rules?as=json").Want(http.StatusOK).Body)
	if found == nil {
		s.Fatal("the page has no editor")
	}
	return html.UnescapeString(found[1])
}

// TestSiteProblems: each problem is shown next to its field, and no input is lost.
func TestSiteProblems(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, shopConfig)
	theirs := s.Create(consoletest.Stranger, room.Config{Slug: "theirs"})
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
			a := s.Post(consoletest.Operator, "/console/new-site", only(only(typed(r), "name", "shop", "urls", "https://shop.example.com/kept", "do", do), test.change...)...)
			found := regexp.MustCompile(`id="e-` + test.field + `">([^<]*)<`).FindStringSubmatch(a.Want(http.StatusBadRequest).Body)
			if found == nil || !strings.Contains(html.UnescapeString(found[1]), test.says) {
				t.Errorf("%s, %s: %q next to %s", name, do, found, test.field)
			}
			a.Has("https://shop.example.com/kept")
		}
	}
	s.AddSite(consoletest.Owner, "taken", r)
	s.Post(consoletest.Operator, "/console/new-site", only(typed(r), "name", "taken", "do", "save")...).Want(http.StatusBadRequest).Has("is taken")
	if list, err := s.Sites.List(t.Context(), consoletest.Actor(consoletest.Owner)); err != nil || len(list) != 1 {
		t.Errorf("%d sites, %v", len(list), err)
	}
}

// TestSiteJSONProblems names the lines of problems.
func TestSiteJSONProblems(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	s.Create(consoletest.Owner, shopConfig)
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
		"twice":          {"{\n  \"version\": 1,\n  \"version\": 1\n}", 3, "must appear only once"},
		"no version":     {"{\n}", 0, "must be 1"},
		"markup":         {"{\n  \"version\": 1,\n  \"rules\": [\n{\"name\": \"<script>\", \"action\": \"</textarea><script>alert(1)</script>\"}]}", 4, "must be"},
	} {
		a := s.Post(consoletest.Operator, "/console/new-site", "as", "json", "name", "shop", "document", strings.ReplaceAll(test.document, "\n", "\r\n"), "do", "save").Want(http.StatusBadRequest)
		a.Has(test.says, html.EscapeString(test.document[strings.IndexByte(test.document, '\n')+1:])).Lacks("<script>alert")
		line := fmt.Sprintf(`data-line="%d"`, test.line)
		if test.line > 0 != strings.Contains(a.Body, "data-line=") || test.line > 0 && !strings.Contains(a.Body, line) {
			t.Errorf("%s: not at line %d:\n%s", name, test.line, a.Body)
		}
	}
}

// TestSitePreview tries addresses without saving anything.
func TestSitePreview(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, shopConfig)
	check := only(typed(r), "do", "check", "urls", "shop.example.com/tickets/1\nhttps://shop.example.com/about\nhttps://other.example.com/")
	s.Post(consoletest.Operator, "/console/new-site", check...).Want(http.StatusOK).Has(
		"waits for sale", "Rule wait /tickets decides.", "no rule matches it", "Its host does not belong to the site", "https://shop.example.com/en/tickets/1 is not protected", "Paths below <code>/tickets</code>")
	s.Post(consoletest.Operator, "/console/new-site", only(check, "urls", "ftp://shop.example.com/")...).Want(http.StatusOK).Has("ftp://shop.example.com/ must be a URL")
	s.Post(consoletest.Operator, "/console/new-site", only(check, "do", "json")...).Want(http.StatusOK).Has(`name="as" value="json"`, "&#34;fail-open-after 90s&#34;")
	s.AddSite(consoletest.Owner, "shop", r)
	s.Get(consoletest.Viewer, "/console/sites/shop?urls=shop.example.com%2Ftickets").Want(http.StatusOK).Has("waits for sale", "Rule tickets decides.")
	s.Post(consoletest.Operator, "/console/sites/shop/rules", "as", "json", "version", "1", "do", "form", "document", `{"version": 1}`).Want(http.StatusBadRequest).Has("The form cannot show these rules")
	if list, err := s.Sites.List(t.Context(), consoletest.Actor(consoletest.Owner)); err != nil || len(list) != 1 || list[0].Version != 1 {
		t.Errorf("sites %+v, %v", list, err)
	}
}

// TestSiteConflict: a person who saves rules that another person has changed is asked, and sees the
// differences.
func TestSiteConflict(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	made := s.AddSite(consoletest.Owner, "shop", s.Create(consoletest.Owner, shopConfig))
	mine := strings.Replace(string(made.Rules), "/tickets", "/mine", 1)
	theirs := strings.Replace(string(made.Rules), "/tickets", "/theirs", 1)
	save := func(document, version string) consoletest.Answer {
		return s.Post(consoletest.Operator, "/console/sites/shop/rules", "as", "json", "do", "save", "version", version, "document", document)
	}
	save(theirs, "1").Want(http.StatusSeeOther)
	a := save(mine, "1").Want(http.StatusConflict).Has("changed in the meantime", "operator@example.com", "/theirs", "/mine", `name="version" value="2"`)
	fields := regexp.MustCompile(`name="([a-z_]+)" value="([^"]*)"`).FindAllStringSubmatch(a.Body, -1)
	var again []string
	for _, f := range fields {
		again = append(again, f[1], html.UnescapeString(f[2]))
	}
	s.Post(consoletest.Operator, "/console/sites/shop/rules", again...).RedirectsTo("/console/sites/shop?done=site-saved")
	if now, err := s.Sites.Site(t.Context(), consoletest.Actor(consoletest.Owner), "shop"); err != nil || now.Version != 3 || !strings.Contains(string(now.Rules), "/mine") {
		t.Errorf("version %d, %v: %s", now.Version, err, now.Rules)
	}
	for _, version := range []string{"", "0", "-1", "x", "99999999999999999999"} {
		save(mine, version).Want(http.StatusBadRequest)
	}
	save(mine, "7").Want(http.StatusConflict)
}

// TestSiteConnectors lists the reporting connectors, and shows how to install one.
func TestSiteConnectors(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	made := s.AddSite(consoletest.Owner, "shop", s.Create(consoletest.Owner, shopConfig))
	key, err := s.Sites.Key(t.Context(), consoletest.Actor(consoletest.Owner))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"proxy", "nginx", "go", "edge", "unknown"} {
		a := s.Get(consoletest.Operator, "/console/sites/shop/install?with="+kind).Want(http.StatusOK).Lacks("%!", "scope=connect")
		a.Has(strings.ReplaceAll(key, "+", "&#43;"), s.Control.Rooms.PublicURL+"/v1/sites/shop/rules", "None has reported yet")
	}
	s.Get(consoletest.Owner, "/console/sites/shop/install").Has("/console/tokens?scope=connect&amp;name=connector+of+shop")
	report := func(n byte, name string, version uint64, counts map[string]uint64) {
		node := site.Node{ID: base64.RawURLEncoding.EncodeToString(append(make([]byte, 15), n)), Site: name, RulesVersion: version, Kind: "proxy", Version: "1.2", Counts: counts}
		if err := s.Sites.Seen(t.Context(), account.MainOrg, node); err != nil {
			t.Fatal(err)
		}
	}
	report(1, "shop", 1, map[string]uint64{"passed": 1234, "odd_one": 7, "panics": 0})
	report(2, "", 0, nil)
	changed := strings.Replace(string(made.Rules), "/tickets", "/members", 1)
	s.Get(consoletest.Viewer, "/console/sites/shop").Has("connected", "1,234 passed with a session", "odd one", "proxy", "1.2", "current").Lacks("behind")
	s.Post(consoletest.Operator, "/console/sites/shop/rules", "as", "json", "version", "1", "document", changed).Want(http.StatusSeeOther)
	s.Get(consoletest.Viewer, "/console/sites/shop").Has(`<span class="badge warn">behind</span> version 1`)
	s.Get(consoletest.Viewer, "/console/sites").Has("1 connected", "1 behind", "Connectors with their own rules")
	s.Get(consoletest.Viewer, "/console/sites/shop/install").Has("Reports in the last day: from 1.")
}

// TestSiteOff shows how many requests would have waited for rooms that are off.
func TestSiteOff(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	rules := `{"version": 1, "rooms": {"sale": {"url": "https://far.example.com/r/a", "mode": "off"}, "spring-drop": {"url": "https://far.example.com/r/b", "mode": "off"},
		"quiet": {"url": "https://far.example.com/r/c", "mode": "off"}, "new": {"url": "https://far.example.com/r/d", "mode": "off"}}, "rules": [{"name": "all", "action": "queue sale"}]}`
	if _, err := s.Sites.Create(t.Context(), consoletest.Actor(consoletest.Owner), "shop", []byte(rules)); err != nil {
		t.Fatal(err)
	}
	s.Get(consoletest.Viewer, "/console/sites/shop").Want(http.StatusOK).Lacks("would have waited")
	for i, counts := range []map[string]uint64{
		{"observed": 5000, "observed_hour_sale": 1230, "observed_hour_spring_drop": 1, "observed_hour_quiet": 0},
		{"observed_hour_sale": 4},
	} {
		node := site.Node{ID: base64.RawURLEncoding.EncodeToString(append(make([]byte, 15), byte(i))), Site: "shop", RulesVersion: 1, Kind: "proxy", Version: "1.2", Counts: counts}
		if err := s.Sites.Seen(t.Context(), account.MainOrg, node); err != nil {
			t.Fatal(err)
		}
	}
	a := s.Get(consoletest.Viewer, "/console/sites/shop")
	a.Has("off</span> 1,234 requests of the last hour would have waited", "off</span> one request of the last hour would have waited", "off</span> no request of the last hour would have waited")
	a.Has("would have waited for a room that is off", "would have waited for spring-drop in the last hour")
	if n := strings.Count(a.Body, "of the last hour would have waited"); n != 3 {
		t.Errorf("%d rooms, and some have counts", n)
	}
}

// TestSiteWarnings shows possible mistakes.
func TestSiteWarnings(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Settings: room.Settings{Targets: []string{"https://other.example.com/"}}})
	s.AddSite(consoletest.Owner, "shop", r)
	s.Get(consoletest.Viewer, "/console/sites/shop").Want(http.StatusOK).Has("Possible mistakes", "does not send visitors back to shop.example.com").Lacks("Settings of the room")
	s.Get(consoletest.Operator, "/console/sites/shop").Has(`<a href="/console/rooms/sale/settings">Settings of the room</a>`)
	s.AddSite(consoletest.Owner, "new", r) // no site can have the name of another page
	s.Get(consoletest.Viewer, "/console/sites/new").Want(http.StatusOK).Has("Paths below")
	net := fmt.Sprintf(`{"version": 1, "rooms": {"sale": {"url": %q, "mode": "safety-net"}, "far": {"url": "https://far.example.com/r/x"}}, "rules": [
		{"name": "friends", "when": {"header": {"x-friend": {"equals": "1"}}}, "action": "bypass"}, {"name": "all", "action": "queue sale"}]}`, r.URL)
	if _, err := s.Sites.Create(t.Context(), consoletest.Actor(consoletest.Owner), "net", []byte(net)); err != nil {
		t.Fatal(err)
	}
	s.Get(consoletest.Viewer, "/console/sites/net").Want(http.StatusOK).Has("safety net", `<span class="badge warn">no connector has reported</span> <a href="/console/rooms/sale">Gate and figures`, "any visitor can send them", "is on another server", "not a room of this organization", "by the default rules",
		`<td data-label="Right now"><span><span class="badge good">line</span> they wait in line; the gate is shut until a connector reports`, "they are sent to the room, which is on another server")
}

// TestWithoutSites: parts that are nil have no pages.
func TestWithoutSites(t *testing.T) {
	t.Parallel()
	s := consoletest.New(t, func(o *console.Options) { o.Sites = nil })
	s.Get(consoletest.Owner, "/console/sites").Want(http.StatusNotFound)
	s.Create(consoletest.Owner, shopConfig)
	s.Get(consoletest.Owner, "/console/rooms/sale").Want(http.StatusOK).Lacks("/console/sites/")
}

// TestEndingTokens: the pages of sites and of tokens show which tokens expire soon, and create the next one
// with the same name and scopes.
func TestEndingTokens(t *testing.T) {
	t.Parallel()
	w := consoletest.NewTown(t)
	server := account.ServerActor(account.MainOrg)
	use := func(text string) {
		t.Helper()
		if _, err := w.Accounts.Tokens.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	give := func(name string, scopes account.Scope, days time.Duration) string {
		t.Helper()
		text, _, err := w.Accounts.Tokens.Make(t.Context(), server, account.NewToken{Name: name, Scopes: scopes, Life: days * 24 * time.Hour})
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
	w.Pass(25 * 24 * time.Hour)
	use(proxy)
	v := w.Setup()
	const next = `href="/console/tokens?days=30&amp;name=the&#43;%3Cproxy%3E&amp;scope=connect#make"`
	member, pages := v.Invite("view@example.com", "viewer"), []string{"/console/sites", "/console/sites/shop"}
	for _, path := range pages {
		ends, ended := "The token <strong>the &lt;proxy&gt;</strong> expires in 4 days", "The token <strong>gone</strong> expired"
		v.Get(path).Want(http.StatusOK).Has("Tokens that expire", ends, ended, next).Lacks("backend", "later", "An owner can create")
		member.Get(path).Want(http.StatusOK).Has(ends, ended, "An owner can create a new one.").Lacks("Create a new one")
	}
	w.Tenant("other").Get("/console/sites").Want(http.StatusOK).Lacks("Tokens that expire")
	list := v.Get("/console/tokens").Want(http.StatusOK).Has(next, `<span class="badge warn">expires in 4 days</span>`, `<span class="badge bad">expired</span>`)
	if n := strings.Count(list.Body, "Create a new one"); n != 3 {
		t.Errorf("%d tokens of four have a next one", n)
	}
	form := v.Get("/console/tokens?days=30&name=the+%3Cproxy%3E&scope=connect&scope=read").Want(http.StatusOK)
	form.Has(`value="the &lt;proxy&gt;"`, `value="connect" checked`, `value="read" checked`, `<option value="30" selected>`).Lacks(`value="admin" checked`)
	v.Get("/console/tokens?days=31").Has(`<option value="90" selected>`)
}

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }
