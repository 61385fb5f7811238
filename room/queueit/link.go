package queueit

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/proofline/proofline/room/setting"
)

// Link is a link made for Queue-it, by one of its connectors (KnownUser V3) or by hand. QUEUE-IT.md lists the forms.
type Link struct {
	Customer string
	Event    string // slug of the room; KnownUser compares it case-sensitively, so other spellings are invalid
	Target   string // URL that the visitor wants to go to
	Culture  string // language such as de-AT
}

var cultureForm = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)

// ParseLink parses the parameters of a link into a line; false if it is not one.
func ParseLink(query url.Values) (Link, bool) {
	l := Link{Customer: query.Get("c"), Event: query.Get("e"), Target: query.Get("t"), Culture: query.Get("cid")}
	if !cultureForm.MatchString(l.Culture) {
		l.Culture = ""
	}
	return l, l.Customer != "" && setting.IsSlug(l.Event)
}

// ParseCancel parses a link that ends a visit, below /cancel/. It has one event,
// customer/event with or without an ID, or several, multiple/customer?wrl=event~id_event~id, of which
// only the first counts.
func ParseCancel(path string, query url.Values) (Link, bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Link{}, false
	}
	l := Link{Customer: parts[0], Event: parts[1], Target: query.Get("r")}
	if rooms := query.Get("wrl"); parts[0] == "multiple" && rooms != "" {
		first, _, _ := strings.Cut(rooms, "_")
		l.Customer = parts[1]
		l.Event, _, _ = strings.Cut(first, "~")
	}
	return l, l.Customer != "" && setting.IsSlug(l.Event)
}
