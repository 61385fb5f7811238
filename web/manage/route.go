package manage

import (
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

// route describes one operation. The OpenAPI document is generated from it.
type route struct {
	method string
	path   string // below Prefix, with parameter names in braces
	scope  account.Scope
	server bool // requires the server's own token

	name    string // operationId
	tag     string
	summary string
	more    string // description in a few sentences; may be empty
	query   []parameter
	in      any    // zero value of the body type; nil: no body
	blank   bool   // whether the body is optional
	example string // example of the body
	out     any    // zero value of the answer's body type; nil: no body
	csv     bool   // whether the answer is available as CSV
	text    bool   // whether the answer is text/plain rather than JSON
	most    int    // maximum size of the body in bytes; 0: maxBody
	status  int    // status of success; 0: 200
	key     keyMode
	tagged  bool // whether answers have an ETag
	matches bool // whether If-Match is supported
	cached  bool // whether If-None-Match is supported

	do func(*call) (reply, error)
}

// keyMode is the effect of an Idempotency-Key on a route.
type keyMode uint8

const (
	keyIgnored keyMode = iota // repeating the request does no harm
	keyKept                   // the answer is stored and sent again
	keySecret                 // the answer has a secret, so only its status is stored
)

// parameter is a query parameter.
type parameter struct {
	name, about string
	schema      schema
	needed      bool
}

func (r *route) fullPath() string { return Prefix + r.path }

// echoPath returns the path in Echo's syntax, with :slug for {slug}.
func (r *route) echoPath() string {
	return strings.NewReplacer("{", ":", "}", "").Replace(r.fullPath())
}

// parameters returns the names of the path parameters.
func (r *route) parameters() (names []string) {
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// paged returns the query parameters of a paged list.
func paged(most int) []parameter {
	return []parameter{
		{
			name: "limit", about: "Maximum number of items on a page.",
			schema: schema{"type": "integer", "minimum": 1, "maximum": most},
		},
		{name: "cursor", about: "The `next` of the previous page.", schema: schema{"type": "string"}},
	}
}

// onID returns the handler of an operation on the object whose UUID is in the path.
func onID(name string, do func(*call, uuid.UUID) error) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		id, err := c.id(name)
		if err != nil {
			return reply{}, err
		}
		return reply{}, do(c, id)
	}
}

// byID returns the handler of an operation on the object whose UUID is in the path. It answers with a
// body.
func byID(name string, do func(*call, uuid.UUID) (any, error)) func(*call) (reply, error) {
	return func(c *call) (reply, error) {
		id, err := c.id(name)
		if err != nil {
			return reply{}, err
		}
		body, err := do(c, id)
		if err != nil {
			return reply{}, err
		}
		return answer(body)
	}
}

// links builds the URLs of created objects.
type links struct{ publicURL string }

// to returns the URL of an object.
func (l links) to(folder, name string) string {
	return l.publicURL + Prefix + folder + "/" + url.PathEscape(name)
}
