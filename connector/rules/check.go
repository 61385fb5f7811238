package rules

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Finding is the decision on one URL, with warnings.
type Finding struct {
	URL      string
	Decision Decision
	Warnings []string // sentences, such as about unprotected addresses of the same page
}

// Check returns the decision on each URL as a browser opens it, and warns of unprotected addresses
// that often lead to the same page. It fails on a text that is not an http or https URL.
func Check(s *Site, urls []string, now time.Time) ([]Finding, error) {
	list := make([]Finding, len(urls))
	for i, text := range urls {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("check %q: must be a URL that begins with https:// or http://", text)
		}
		d := s.open(u, now)
		list[i] = Finding{text, d, nil}
		switch {
		case d.Outcome == Bypass && d.Rule == NoRule:
			list[i].Warnings = []string{"no rule matches it: all visitors get in without waiting"}
		case d.Outcome == Bypass && d.Room != "":
			list[i].Warnings = []string{fmt.Sprintf("room %s is off now: all visitors get in without waiting", d.Room)}
		case d.Outcome == Queue, d.Outcome == Shut:
			list[i].Warnings = s.escapes(u, d, now)
		}
	}
	return list, nil
}

// open decides about a URL as a browser opens it.
func (s *Site) open(u *url.URL, now time.Time) Decision {
	return s.Decide(&Request{Method: "GET", Host: u.Host, Target: u.RequestURI()}, now)
}

// escapes returns warnings about unprotected addresses of a protected URL.
func (s *Site) escapes(u *url.URL, d Decision, now time.Time) (list []string) {
	for _, a := range aliases(u) {
		if got := s.open(&a.url, now); got.Outcome == Bypass {
			why := "no rule matches it"
			if got.Rule != NoRule {
				why = fmt.Sprintf("rule %q exempts it", got.Rule)
			}
			list = append(list, fmt.Sprintf("%s is not protected (%s): %s", a.url.String(), a.what, why))
		}
	}
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.Name == d.Rule })
	switch w := s.Rules[i].When; {
	case w.Method != nil:
		list = append(list, fmt.Sprintf("rule %q tests the method: clients can fake it at sites that support X-HTTP-Method-Override or _method", d.Rule))
	case w.UserAgent != nil, w.Header != nil, w.Cookie != nil:
		list = append(list, fmt.Sprintf("rule %q tests the user agent: clients can send any",
			d.Rule))
	case w.Query != nil:
		list = append(list, fmt.Sprintf("rule %q tests the query: remove that test if the page opens without the query",
			d.Rule))
	}
	return list
}

// alias is another address that often leads to the same page.
type alias struct {
	what string
	url  url.URL
}

// locales are common path prefixes for languages.
var locales = []string{"/en", "/de", "/fr", "/es", "/it", "/nl", "/en-us"}

func aliases(u *url.URL) []alias {
	var list []alias
	add := func(what string, change func(*url.URL)) {
		c := *u
		c.RawPath, c.Fragment = "", ""
		change(&c)
		list = append(list, alias{what, c})
	}
	path := strings.TrimSuffix(u.Path, "/")
	add("other scheme", func(c *url.URL) { c.Scheme = map[string]string{"http": "https", "https": "http"}[c.Scheme] })
	if www, ok := strings.CutPrefix(u.Host, "www."); ok {
		add("without www.", func(c *url.URL) { c.Host = www })
	} else {
		add("with www.", func(c *url.URL) { c.Host = "www." + c.Host })
	}
	add("other case", func(c *url.URL) { c.Path = strings.ToUpper(c.Path) })
	add("without query", func(c *url.URL) { c.RawQuery = "" })
	if u.Path == path {
		add("with a last slash", func(c *url.URL) { c.Path = path + "/" })
	} else if path != "" {
		add("without a trailing slash", func(c *url.URL) { c.Path = path })
	}
	for _, ending := range []string{"/index.html", "/index.php", ".html", ".php", ".json"} {
		if path != "" || ending[0] == '/' {
			add("ending in "+ending, func(c *url.URL) { c.Path = path + ending })
		}
	}
	add("with a file extension", func(c *url.URL) { c.Path = path + "/x.css" })
	for _, locale := range locales {
		add("in a language", func(c *url.URL) { c.Path = locale + path })
	}
	return list
}
