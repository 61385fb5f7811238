package rules

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Finding says what the rules do with one URL.
type Finding struct {
	URL      string
	Decision Decision
	Warnings []string // addresses under which it may be passed, in words
}

// Check says which rule decides about each URL when a browser opens it, and
// warns of addresses that often lead to the same page and are not protected.
// Error: something is no URL of http or https.
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
			list[i].Warnings = []string{"no rule is for it: everybody gets in without waiting"}
		case d.Outcome == Bypass && d.Room != "":
			list[i].Warnings = []string{fmt.Sprintf("room %s is off now: everybody gets in without waiting", d.Room)}
		case d.Outcome == Queue, d.Outcome == Shut:
			list[i].Warnings = s.escapes(u, d, now)
		}
	}
	return list, nil
}

// open decides about a URL that a browser opens.
func (s *Site) open(u *url.URL, now time.Time) Decision {
	return s.Decide(&Request{Method: "GET", Host: u.Host, Target: u.RequestURI()}, now)
}

// escapes warns of addresses that are not protected although the URL is.
func (s *Site) escapes(u *url.URL, d Decision, now time.Time) (list []string) {
	for _, a := range aliases(u) {
		if got := s.open(&a.url, now); got.Outcome == Bypass {
			why := "no rule is for it"
			if got.Rule != NoRule {
				why = fmt.Sprintf("rule %q lets it through", got.Rule)
			}
			list = append(list, fmt.Sprintf("%s is not protected (%s): %s", a.url.String(), a.what, why))
		}
	}
	i := slices.IndexFunc(s.Rules, func(r Rule) bool { return r.Name == d.Rule })
	switch w := s.Rules[i].When; {
	case w.Method != nil:
		list = append(list, fmt.Sprintf("rule %q tests the method: a site that honours X-HTTP-Method-Override or _method can be shown another", d.Rule))
	case w.UserAgent != nil, w.Header != nil, w.Cookie != nil:
		list = append(list, fmt.Sprintf("rule %q tests what a visitor's browser says about itself: visitors can say something else", d.Rule))
	case w.Query != nil:
		list = append(list, fmt.Sprintf("rule %q tests the query: leave it out if the page opens without", d.Rule))
	}
	return list
}

// alias is another address that often leads to the same page.
type alias struct {
	what string
	url  url.URL
}

// locales are path prefixes of languages that sites often have.
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
		add("without a last slash", func(c *url.URL) { c.Path = path })
	}
	for _, ending := range []string{"/index.html", "/index.php", ".html", ".php", ".json"} {
		if path != "" || ending[0] == '/' {
			add("ending in "+ending, func(c *url.URL) { c.Path = path + ending })
		}
	}
	add("as a file of the page", func(c *url.URL) { c.Path = path + "/x.css" })
	for _, locale := range locales {
		add("in a language", func(c *url.URL) { c.Path = locale + path })
	}
	return list
}
