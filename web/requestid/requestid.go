// Package requestid gives HTTP requests the IDs by which logs and answers name them.
package requestid

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
)

// Header is the header with the ID of a request.
const Header = "X-Request-Id"

// Source numbers the requests of this process, with a random prefix.
type Source struct {
	prefix string
	last   *atomic.Uint64
}

// New returns a source.
func New() Source { return Source{strings.ToLower(rand.Text()[:10]) + "-", new(atomic.Uint64)} }

// Of returns the ID set by a proxy, or a new one.
func (s Source) Of(r *http.Request) string {
	if given := r.Header[Header]; len(given) == 1 && form.MatchString(given[0]) {
		return given[0]
	}
	b := make([]byte, 0, 32)
	b = append(b, s.prefix...)
	return string(strconv.AppendUint(b, s.last.Add(1), 36))
}

// form matches IDs that are safe to log.
var form = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
