package queueit

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// FuzzLink: whatever a link contains, its event is a slug, and its culture can contain nothing else.
func FuzzLink(f *testing.F) {
	for _, seed := range []string{
		"/?c=cust&e=sale&t=https%3A%2F%2Fshop.example.com%2F&cid=de-AT", "/cancel/cust/sale/1?r=https://shop.example.com", "/cancel/multiple/cust?wrl=a~1_b~2",
		"/?c=%00&e=%ff", "/cancel//", "/cancel/multiple/?wrl=~", "/error/hash/?c=a&e=a&c=b&e=b",
	} {
		f.Add(seed)
	}
	slug, culture := regexp.MustCompile(`^[a-z0-9-]{1,63}$`), regexp.MustCompile(`^[A-Za-z0-9-]{0,40}$`)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			return
		}
		join, isJoin := ParseLink(u.Query())
		cancel, isCancel := ParseCancel(strings.TrimPrefix(u.Path, "/cancel"), u.Query())
		for l, ok := range map[Link]bool{join: isJoin, cancel: isCancel} {
			if ok && (!slug.MatchString(l.Event) || !culture.MatchString(l.Culture) || l.Customer == "") {
				t.Errorf("%q is read as %+v", text, l)
			}
		}
	})
}
