package site_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site"
	"github.com/proofline/proofline/internal/invalid"
)

var when = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// TestRefused checks that invalid rules are refused with the reason, and that nothing is stored.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.room(owner, "sale", "", "https://shop.example.com/")
	s.room(owner, "custom", tickets, "https://shop.example.com/")
	s.room(another, "theirs", "", "https://shop.example.com/")
	for _, test := range []struct{ name, rules, field, detail string }{
		{"nothing", "", "rules", "must be a JSON object"},
		{"no JSON", "version: 1", "rules", "must be a JSON object"},
		{"not UTF-8", `{"version": 1, "hosts": ["` + "\xff" + `"]}`, "rules", "must be UTF-8"},
		{"another version", `{"version": 2}`, "version", "must be 1"},
		{"a misspelled rule", strings.Replace(rulesFor(saleURL), "queue sale", "queue sal", 1), "rules[0].action", ""},
		{"a tab in a text", "{\"version\": 1, \"hosts\": [\"a\tb\"]}", "rules", "must be a JSON object"},
		{"too large", `{"version": 1, "hosts": ["` + strings.Repeat("a", 999_000) + `"]}`, "rules", "must be at most 999000 bytes"},
		{"many hosts", `{"version": 1, "hosts": ["` + strings.Repeat(strings.Repeat("a", 99)+`","`, 330) + `b"]}`, "hosts", "must have at most 32000 bytes in total"},
		{"unknown room", rulesFor("https://queue.example.com/r/nothing"), "rooms.sale.url", "must be the URL of a room of this organization"},
		{"room of another organization", rulesFor("https://queue.example.com/r/theirs"), "rooms.sale.url", "must be the URL of a room of this organization"},
		{"not a room URL", rulesFor("https://queue.example.com"), "rooms.sale.url", "must be the URL of a room of this organization"},
		{"another origin", strings.Replace(rulesFor(saleURL), `r/sale"`, `r/sale", "origin": "queue.example.com/r/other"`, 1), "rooms.sale.origin", "must be the room's origin: queue.example.com/r/sale"},
		{"another path", rulesFor("https://queue.example.com/sale"), "rooms.sale.url", "must be the published URL of the room: " + saleURL},
		{"another spelling", rulesFor("https://QUEUE.example.com:443/r/sale"), "rooms.sale.url", "must be the published URL of the room: " + saleURL},
		{"another host of ours", rulesFor("https://" + tickets + "/r/sale"), "rooms.sale.url", "must be the published URL of the room: " + saleURL},
		{"not the custom host", rulesFor("https://queue.example.com/r/custom"), "rooms.sale.url", "must be the published URL of the room: https://" + tickets + "/r/custom"},
		{"unknown room on the custom host", rulesFor("https://" + tickets + "/r/nothing"), "rooms.sale.url", "must be the URL of a room of this organization"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Create(t.Context(), owner, "shop", []byte(test.rules))
			refused(t, err, test.field, test.detail)
		})
	}
	if list, err := s.List(t.Context(), owner); err != nil || len(list) != 0 {
		t.Errorf("stored %+v, %v", list, err)
	}
	for _, verb := range s.verbs(owner, "shop") {
		if verb != "site.create refused" {
			t.Errorf("activity log entry %q", verb)
		}
	}
	for _, name := range []string{"", "Shop", "-shop", "shop-", strings.Repeat("a", 64), "a/b", "a\x00"} {
		_, err := s.Create(t.Context(), owner, name, []byte(open))
		refused(t, err, "name", "must be 1 to 63 of")
	}
	s.create(owner, "origin", strings.Replace(rulesFor(saleURL), `r/sale"`, `r/sale", "origin": "queue.example.com/r/sale"`, 1))
	s.create(owner, "custom", rulesFor("https://"+tickets+"/r/custom"))
	s.create(owner, strings.Repeat("a", 63), rulesFor("https://queue.example.com:8443/r/sale")) // another server
}

// TestWarnings checks the warnings against the current state of the rooms.
func TestWarnings(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.room(owner, "sale", "", "https://shop.example.com/", "https://www.shop.example.com/tickets")
	s.room(owner, "nowhere", "")
	s.room(owner, "over", "", "https://shop.example.com/")
	if _, err := s.control.End(t.Context(), owner, "over"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // the end is stored asynchronously
		page, err := s.control.Records.Get(t.Context(), "over")
		if err != nil || time.Now().After(deadline) {
			t.Fatal("the room does not end", err)
		}
		if page.Ended != nil {
			break
		}
	}
	for name, test := range map[string]struct{ hosts, url, warning, mode string }{
		"fine":            {`"shop.example.com"`, saleURL, "", ""},
		"fine by pattern": {`"*.example.com", "www.*"`, saleURL, "", ""},
		"no hosts":        {``, saleURL, "", ""},
		"one missing":     {`"shop.example.com", "other.example.com"`, saleURL, "does not send visitors back to other.example.com: add its address to the room's targets", ""},
		"two missing":     {`"*.example.org", "example.com"`, saleURL, "does not send visitors back to *.example.org, example.com: add their addresses to the room's targets", ""},
		"no targets":      {``, "https://queue.example.com/r/nowhere", "has nowhere to send admitted visitors: add the site's address to the room's targets", ""},
		"ended":           {``, "https://queue.example.com/r/over", "has ended and admits no visitors: name another room, or set its mode to off", ""},
		"elsewhere":       {``, "https://elsewhere.example.com/r/sale", "is on another server: this server cannot check that it exists and sends visitors back to the site", ""},
		"net elsewhere":   {``, "https://elsewhere.example.com/r/sale", "is on another server: connectors with these rules report to this server, so the room's gate never opens for them", "safety-net"},
		"closed":          {``, saleURL, "is closed by these rules but still calls visitors, and the site turns them away: pause or end the room", "closed"},
		"closed and over": {``, "https://queue.example.com/r/over", "has ended and admits no visitors: name another room, or set its mode to off", "closed"},
	} {
		made := s.create(owner, strings.ReplaceAll(name, " ", "-"), `{"version": 1, "hosts": [`+test.hosts+`], "rooms": {"one": {"url": "`+test.url+`", "mode": "`+cmp.Or(test.mode, "always")+`"}}}`)
		list, err := s.Warnings(t.Context(), made)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case test.warning == "" && len(list) != 0:
			t.Errorf("%s: %+v", name, list)
		case test.warning != "" && (len(list) != 1 || list[0] != site.Warning{Field: "rooms.one", Detail: test.warning}):
			t.Errorf("%s: %+v, want %s", name, list, test.warning)
		}
	}
}

// TestCheck checks URLs against saved and unsaved rules.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.room(owner, "sale", "", "https://shop.example.com/")
	s.create(owner, "shop", rulesFor(saleURL))
	urls := []string{"https://shop.example.com/tickets/7", "https://shop.example.com/about", "https://other.example.com/"}
	got, err := s.Check(t.Context(), viewer, "shop", nil, urls, when)
	if err != nil || len(got) != 3 || got[0].Decision != (rules.Decision{Outcome: rules.Queue, Room: "sale", Rule: "tickets"}) ||
		got[1].Decision.Rule != rules.NoRule || got[2].Decision.Outcome != rules.Block || len(got[0].Warnings) == 0 {
		t.Errorf("found %+v, %v", got, err)
	}
	got, err = s.Check(t.Context(), viewer, "shop", []byte(open), urls[:1], when)
	if err != nil || len(got) != 1 || got[0].Decision.Outcome != rules.Bypass {
		t.Errorf("unsaved rules: found %+v, %v", got, err)
	}
	_, err = s.Check(t.Context(), viewer, "shop", []byte("{}"), urls, when)
	refused(t, err, "version", "must be 1")
	_, err = s.Check(t.Context(), viewer, "shop", nil, append(urls, "shop.example.com"), when)
	refused(t, err, "urls[3]", "must be a URL")
	_, err = s.Check(t.Context(), viewer, "shop", nil, []string{"https://shop.example.com/" + strings.Repeat("a", 2000)}, when)
	refused(t, err, "urls[0]", "of at most 2000 bytes")
	for _, list := range [][]string{nil, make([]string, site.MaxURLs+1)} {
		_, err = s.Check(t.Context(), viewer, "shop", nil, list, when)
		refused(t, err, "urls", "must be 1 to 100")
	}
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name": "%d", "action": "block"}`, i)
	}
	document := []byte(`{"version": 1, "rules": [` + strings.Join(many, ",") + `]}`)
	_, err = site.Check(document, make([]string, 11), when)
	refused(t, err, "urls", "must be 1 to 10 URLs for this number of rules")
	if got, err := site.Check(document, slices.Repeat(urls[:1], 10), when); err != nil || len(got) != 10 || got[9].Decision.Rule != "0" {
		t.Errorf("found %+v, %v", got, err)
	}
}

// TestOthersRooms checks that rules cannot use sites and rooms of another organization.
func TestOthersRooms(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.room(owner, "sale", "", "https://shop.example.com/")
	made := s.create(owner, "shop", rulesFor(saleURL))
	if _, err := s.Update(t.Context(), owner, "shop", 0, []byte(open)); err != nil {
		t.Fatal(err)
	}
	theirs := made
	theirs.Org = another.Org // as if the room had changed hands
	list, err := s.Warnings(t.Context(), theirs)
	if err != nil || len(list) != 1 || list[0].Detail != "no longer exists: "+saleURL {
		t.Errorf("warnings %+v, %v", list, err)
	}
	_, err = s.Update(t.Context(), another, "shop", 0, made.Rules)
	if !errors.Is(err, account.ErrNotFound) {
		t.Errorf("another organization's site: %v", err)
	}
	_, err = s.Create(t.Context(), another, "shop", made.Rules)
	if _, ok := errors.AsType[*invalid.Error](err); !ok {
		t.Errorf("another organization's room: %v", err)
	}
}
