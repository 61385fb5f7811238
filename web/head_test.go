package web

import (
	"bytes"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/proofline/proofline/web/picture"
)

// head is the content of a page's <head>.
type head struct {
	title string
	meta  map[string]string // by name or property
	links map[string][]string
}

func headOf(t testing.TB, page string) head {
	t.Helper()
	h := head{meta: map[string]string{}, links: map[string][]string{}}
	for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
		token := z.Token()
		attributes := map[string]string{}
		for _, a := range token.Attr {
			attributes[a.Key] = a.Val
		}
		switch token.Data {
		case "title":
			if token.Type == html.StartTagToken && h.title == "" {
				z.Next()
				h.title = z.Token().Data
			}
		case "meta":
			h.meta[attributes["name"]+attributes["property"]] = attributes["content"]
		case "link":
			h.links[attributes["rel"]] = append(h.links[attributes["rel"]], attributes["href"])
		case "body":
			return h
		}
	}
	return h
}

// TestHeads checks the head of every public page: each has a title and existing icons, and pages that
// people share have a preview for messengers.
func TestHeads(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	slug := s.make("slug", s.other)
	for path, address := range map[string]string{
		"/": publicURL, "/r/" + slug: publicURL + "/r/" + slug, "/r/" + slug + "/check": publicURL + "/r/" + slug, "/r/" + slug + "/fair": publicURL + "/r/" + slug,
		"/r/nothing": "", "/nothing": "", "/console": "",
	} {
		a := s.get(path, "Accept: text/html")
		if a.status == http.StatusSeeOther {
			a = s.get(a.header.Get("Location"), "Accept: text/html")
		}
		h := headOf(t, a.body)
		if h.title == "" || h.meta["robots"] != "noindex" {
			t.Errorf("%s: title %q, robots %q", path, h.title, h.meta["robots"])
		}
		for rel, most := range map[string]int{"icon": 2, "apple-touch-icon": 1, "stylesheet": 2} {
			if len(h.links[rel]) == 0 || len(h.links[rel]) > most {
				t.Errorf("%s: %s is %q", path, rel, h.links[rel])
			}
			if rel == "stylesheet" { // the test's site has no console.css
				continue
			}
			for _, link := range h.links[rel] {
				if icon := s.get(link); icon.status != http.StatusOK || !strings.HasPrefix(icon.header.Get("Content-Type"), "image/") {
					t.Errorf("%s: the icon %s is %d %s", path, link, icon.status, icon.header.Get("Content-Type"))
				}
			}
		}
		if address == "" {
			continue
		}
		for _, name := range []string{"description", "og:title", "og:description", "og:type"} {
			if h.meta[name] == "" {
				t.Errorf("%s has no %s", path, name)
			}
		}
		if h.meta["og:url"] != address {
			t.Errorf("%s: og:url is %q", path, h.meta["og:url"])
		}
		image, ok := strings.CutPrefix(h.meta["og:image"], publicURL+"/")
		if !ok {
			t.Fatalf("%s: og:image is %q", path, h.meta["og:image"])
		}
		m, err := png.Decode(bytes.NewReader([]byte(s.get("/" + image).want(http.StatusOK).body)))
		if err != nil || m.Bounds().Dx() != picture.PreviewWidth || m.Bounds().Dy() != picture.PreviewHeight || h.meta["og:image:width"] != "1200" || h.meta["og:image:height"] != "630" {
			t.Errorf("%s: the picture is not what its head says: %v", path, err)
		}
	}
}

// TestSecurityText serves security.txt when the server has a contact, and not
// otherwise.
func TestSecurityText(t *testing.T) {
	t.Parallel()
	const path = "/.well-known/security.txt"
	newSite(t).get(path).want(http.StatusNotFound)
	s := newSite(t, func(o *Options) {
		o.Contacts = []string{"mailto:security@example.com", "https://example.com/report"}
	})
	a := s.get(path).want(http.StatusOK)
	if got := a.header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
		t.Errorf("it is %s", got)
	}
	lines := strings.Split(a.body, "\r\n")
	if lines[0] != "Contact: mailto:security@example.com" || lines[1] != "Contact: https://example.com/report" {
		t.Errorf("contacts: %q", lines)
	}
	expires, err := time.Parse(time.RFC3339, strings.TrimPrefix(lines[2], "Expires: "))
	if left := time.Until(expires); err != nil || left < 24*time.Hour || left > 365*24*time.Hour {
		t.Errorf("it holds for %v: %v", left, err)
	}
}
