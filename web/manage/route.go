package manage

import (
	"strings"

	"github.com/proofline/proofline/console/account"
)

// route is one operation: who may do it, what it takes and answers, and what
// does it. The document of the API is made of the same.
type route struct {
	method string
	path   string // below Prefix, names of parameters in braces
	scope  account.Scope
	server bool // for the server's own token alone

	name    string // operationId
	tag     string
	summary string
	more    string // a few sentences, may be empty
	query   []parameter
	in      any    // zero value of the body; nil: none is read
	blank   bool   // the body may be left out
	example string // of the body
	out     any    // zero value of the answer's body; nil: there is none
	csv     bool   // answers as CSV as well
	text    bool   // answers as text/plain, rather than as out says
	most    int    // bytes of the body; 0: maxBody
	status  int    // of success; 0: 200
	key     keyMode
	tagged  bool // answers have an ETag
	matches bool // If-Match is honoured
	cached  bool // If-None-Match is honoured

	do func(*call) (reply, error)
}

// keyMode says what an Idempotency-Key does for a route.
type keyMode uint8

const (
	keyIgnored keyMode = iota // sending it again does no harm
	keyKept                   // the answer is kept, and given again
	keySecret                 // the answer has a secret, so only that it was done is kept
)

// parameter is one of a query.
type parameter struct {
	name, about string
	schema      schema
	needed      bool
}

func (r *route) fullPath() string { return Prefix + r.path }

// echoPath writes the path as Echo does: {slug} is :slug.
func (r *route) echoPath() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(r.fullPath())
}

// parameters returns the names of those in the path.
func (r *route) parameters() (names []string) {
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// paged are the parameters of a list.
func paged(most int) []parameter {
	return []parameter{
		{name: "limit", about: "How many items a page has at most.", schema: schema{"type": "integer", "minimum": 1, "maximum": most}},
		{name: "cursor", about: "The `next` of the page before.", schema: schema{"type": "string"}},
	}
}
