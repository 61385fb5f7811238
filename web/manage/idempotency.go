package manage

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/google/uuid"

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

// Keys stores Idempotency-Keys and the answers to requests with them.
type Keys interface {
	ClaimKey(ctx context.Context, org uuid.UUID, key string, request []byte) (*pgcontrol.Answer, error)
	KeepAnswer(ctx context.Context, org uuid.UUID, key string, answer pgcontrol.Answer) error
	ReleaseKey(ctx context.Context, org uuid.UUID, key string) error
	PruneKeys(ctx context.Context) error
}

// keys performs requests once for each Idempotency-Key. Safe for concurrent use.
type keys struct {
	store  Keys
	status func(error) int // HTTP status for an error
	pruned interval
}

// once performs a request, once for all requests with the same key.
//
// A request that is refused releases its key, because it had no effect. A request whose outcome is unknown keeps
// it, even if the server has stopped meanwhile: a retry then gets an error instead of being performed a second
// time.
func (k *keys) once(r *route, c *call, do func() (reply, error)) (reply, error) {
	header := c.echo.Request().Header.Get(KeyHeader)
	if header == "" || r.key == keyIgnored {
		return do()
	}
	form := keyForm.FindStringSubmatch(header)
	if form == nil {
		return reply{}, invalid.Field(KeyHeader,
			"must be 1 to 200 printable ASCII characters without spaces, preferably a UUID")
	}
	key := form[1] + form[2]
	k.prune(c)
	before, err := k.store.ClaimKey(c, c.actor.Org, key, requestHash(c))
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
	if err != nil && k.didNothing(err) {
		return out, errors.Join(err, k.store.ReleaseKey(late, c.actor.Org, key))
	}
	if err != nil {
		return out, err
	}
	kept, err := out.kept(r)
	if err == nil { // if storing fails, a retry gets the error that the outcome is unknown
		_ = k.store.KeepAnswer(late, c.actor.Org, key, kept)
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
func (k *keys) didNothing(err error) bool {
	return k.status(err) < http.StatusInternalServerError || errors.Is(err, room.ErrBusy) ||
		errors.Is(err, room.ErrStopping)
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

// interval limits how often something is done. Safe for concurrent use.
type interval struct {
	mu   sync.Mutex
	last time.Time
}

// due reports whether it has passed; if so, it starts again.
func (i *interval) due(now time.Time, length time.Duration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.last) < length {
		return false
	}
	i.last = now
	return true
}

// prune deletes old keys from time to time. Errors do not matter to the current request: the next
// prune tries again.
func (k *keys) prune(ctx context.Context) {
	if k.pruned.due(time.Now(), pruneInterval) {
		_ = k.store.PruneKeys(ctx)
	}
}
