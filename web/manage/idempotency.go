package manage

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/proofline/proofline/console/control/pgcontrol"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

// Headers of idempotent requests
// (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/).
const (
	KeyHeader      = "Idempotency-Key"
	ReplayedHeader = "Idempotency-Replayed"
)

// keyForm matches a key, with the quotes that the draft requires or without.
var keyForm = regexp.MustCompile(`^(?:"([!#-~]{1,200})"|([!#-~]{1,200}))$`)

// keepTimeout limits the time for storing an answer.
const keepTimeout = 5 * time.Second

// once performs a request, once for all requests with the same key.
//
// A request that is refused releases its key, since it had no effect. A request whose outcome is
// unknown keeps it, also if the server stopped meanwhile: a retry is then told so, rather than being
// performed a second time.
func (a *API) once(r *route, c *call, do func() (reply, error)) (reply, error) {
	header := c.echo.Request().Header.Get(KeyHeader)
	if header == "" || r.key == keyIgnored {
		return do()
	}
	form := keyForm.FindStringSubmatch(header)
	if form == nil {
		return reply{}, invalid.Field(KeyHeader, "must be 1 to 200 printable ASCII characters without spaces, preferably a UUID")
	}
	key := form[1] + form[2]
	a.prune(c)
	before, err := a.Control.Store.ClaimKey(c, c.actor.Org, key, requestHash(c))
	switch {
	case errors.Is(err, pgcontrol.ErrKeyReused):
		return reply{}, ErrKeyReused
	case errors.Is(err, pgcontrol.ErrKeyUnderWay):
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
		return out, errors.Join(err, a.Control.Store.ReleaseKey(late, c.actor.Org, key))
	}
	if err != nil {
		return out, err
	}
	kept, err := out.kept(r)
	if err == nil { // if storing fails, a retry is told that the outcome is unknown
		_ = a.Control.Store.KeepAnswer(late, c.actor.Org, key, kept)
	}
	return out, err
}

// requestHash returns a hash that identifies the request.
func requestHash(c *call) []byte {
	r := c.echo.Request()
	h := sha256.New()
	for _, part := range []string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("If-Match")} {
		_, _ = h.Write([]byte(part + "\x00")) // never fails
	}
	_, _ = h.Write(c.body)
	return h.Sum(nil)
}

// didNothing reports whether an error means that the request had no effect.
func (a *API) didNothing(err error) bool {
	return a.Status(err) < http.StatusInternalServerError || errors.Is(err, room.ErrBusy) || errors.Is(err, room.ErrStopping)
}

// kept returns the stored form of an answer.
func (r reply) kept(to *route) (pgcontrol.Answer, error) {
	out := pgcontrol.Answer{Status: r.statusOf(to), Headers: map[string]string{}}
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

// replayed returns the reply for a stored answer.
func replayed(c *call, a *pgcontrol.Answer) reply {
	c.echo.Response().Header().Set(ReplayedHeader, "true")
	out := reply{status: a.Status, location: a.Headers["Location"], etag: a.Headers["ETag"]}
	if len(a.Body) > 0 {
		out.raw, out.mediaType = a.Body, a.Headers["Content-Type"]
	}
	return out
}

// pruneInterval is the minimum time between deletions of old keys.
const pruneInterval = time.Hour

// clock limits how often something is done. Safe for concurrent use.
type clock struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether the interval has passed; if so, it starts again.
func (c *clock) due(now time.Time, interval time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.last) < interval {
		return false
	}
	c.last = now
	return true
}

// prune deletes old keys from time to time. Errors do not matter to the current request: the next
// prune tries again.
func (a *API) prune(ctx context.Context) {
	if a.pruned.due(time.Now(), pruneInterval) {
		_ = a.Control.Store.PruneKeys(ctx)
	}
}
