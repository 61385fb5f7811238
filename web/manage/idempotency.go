package manage

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/proofline/proofline/console/desk/pgdesk"
	"github.com/proofline/proofline/room"
)

// Headers of requests that may be sent again
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).
const (
	KeyHeader      = "Idempotency-Key"
	ReplayedHeader = "Idempotency-Replayed"
)

// keyForm is a key: in quotes, as the draft wants it, or without.
var keyForm = regexp.MustCompile(`^(?:"([!#-~]{1,200})"|([!#-~]{1,200}))$`)

// keepTimeout bounds how long the note of an answer may take.
const keepTimeout = 5 * time.Second

// once does what a request wants, once for all requests with the same key.
//
// A request that is refused gives its key back, for nothing was done. One whose
// outcome nobody knows keeps it, and so does one that the server did not
// outlive: whoever sends it again is told so, rather than having it done twice.
func (a *API) once(r *route, c *call, do func() (reply, error)) (reply, error) {
	header := c.echo.Request().Header.Get(KeyHeader)
	if header == "" || r.key == keyIgnored {
		return do()
	}
	form := keyForm.FindStringSubmatch(header)
	if form == nil {
		return reply{}, invalid(KeyHeader, "must be 1 to 200 printable ASCII characters without spaces, best a UUID")
	}
	key := form[1] + form[2]
	a.prune(c)
	before, err := a.Desk.Store.ClaimKey(c, c.actor.Org, key, requestHash(c))
	switch {
	case errors.Is(err, pgdesk.ErrKeyReused):
		return reply{}, ErrKeyReused
	case errors.Is(err, pgdesk.ErrKeyUnderWay):
		return reply{}, ErrKeyUnderWay
	case err != nil:
		return reply{}, err
	case before != nil && r.key == keySecret:
		return reply{}, ErrKeyDone
	case before != nil:
		return replayed(c, before), nil
	}
	out, err := do()
	late, cancel := context.WithTimeout(context.WithoutCancel(c), keepTimeout)
	defer cancel()
	if err != nil && a.didNothing(err) {
		return out, errors.Join(err, a.Desk.Store.ReleaseKey(late, c.actor.Org, key))
	}
	if err != nil {
		return out, err
	}
	kept, err := out.kept(r)
	if err == nil { // without the answer, whoever sends it again is told that nobody knows
		_ = a.Desk.Store.KeepAnswer(late, c.actor.Org, key, kept)
	}
	return out, err
}

// requestHash says which request it is.
func requestHash(c *call) []byte {
	r := c.echo.Request()
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("If-Match")} {
		_, _ = h.Write([]byte(part + "\x00")) // never fails
	}
	_, _ = h.Write(c.body)
	return h.Sum(nil)
}

// didNothing tells whether an error says that nothing was done.
func (a *API) didNothing(err error) bool {
	return a.Status(err) < http.StatusInternalServerError || errors.Is(err, room.ErrBusy) || errors.Is(err, room.ErrStopping)
}

// kept is what is stored of an answer.
func (r reply) kept(to *route) (pgdesk.Answer, error) {
	out := pgdesk.Answer{Status: r.statusOf(to), Headers: map[string]string{}}
	if to.key == keySecret {
		return out, nil
	}
	mediaType, body, err := r.encode()
	out.Body = body
	for name, value := range map[string]string{"Content-Type": mediaType, "Location": r.location, "ETag": r.etag} {
		if value != "" {
			out.Headers[name] = value
		}
	}
	return out, err
}

// replayed is an answer from before.
func replayed(c *call, a *pgdesk.Answer) reply {
	c.echo.Response().Header().Set(ReplayedHeader, "true")
	out := reply{status: a.Status, location: a.Headers["Location"], etag: a.Headers["ETag"]}
	if len(a.Body) > 0 {
		out.raw, out.mediaType = a.Body, a.Headers["Content-Type"]
	}
	return out
}

// pruneEvery is how often old keys are forgotten, at most.
const pruneEvery = time.Hour

// clock says when something was done last. Safe for concurrent use.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

// due tells one caller in every so much time that it is.
func (c *clock) due(now time.Time, every time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) < every {
		return false
	}
	c.last = now
	return true
}

// prune forgets old keys once in a while. That it fails is tried again later,
// and is no matter of the request that came just then.
func (a *API) prune(ctx context.Context) {
	if a.pruned.due(time.Now(), pruneEvery) {
		_ = a.Desk.Store.PruneKeys(ctx)
	}
}
