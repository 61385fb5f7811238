package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
)

// Sealer encrypts secrets at rest, each for one purpose. [keys.MasterKey] implements it.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// ActivityLog writes the activity log of operators. Details must not contain secrets.
type ActivityLog interface {
	Record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error
}

// Mailer sends plain-text mail.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// Resolver looks up TXT records. *[net.Resolver] implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Options configures [New]. Store, Sealer and URL are required.
type Options struct {
	Store       *pgaccount.Store
	Sealer      Sealer
	ActivityLog ActivityLog // nil: no activity log
	// URL is the base URL of the server without a trailing slash, such as
	// "https://queue.example.com".
	URL string
	// OnSetup is called when the first owner has been created on this node; may be nil.
	OnSetup  func()
	Host     string      // the server's own host, with or without port; organizations cannot claim it
	Mailer   Mailer      // nil: invitations are not mailed, owners copy the link
	OIDC     *OIDCConfig // nil: no sign-in by OpenID Connect
	Resolver Resolver    // nil: the system resolver
	Now      func() time.Time
	Rand     io.Reader
	Log      *slog.Logger
	Cost     Cost // of hashing passwords; zero value: [DefaultCost]
}

// Accounts manages all accounts of a server. It is safe for concurrent use, and any number of nodes
// may share a database.
type Accounts struct {
	Options
	hashing  chan struct{} // semaphore for unknown browsers, of size maxHashing
	known    chan struct{} // semaphore for known browsers and signed-in people, of size 1
	dummy    string        // a hash that matches no password, for addresses without an account
	tokens   tokenCache
	hosts    cache[string, uuid.UUID]
	shown    cache[uuid.UUID, Organization] // names and logos of organizations
	logos    sync.Map                       // Logo by version
	provider provider
	work     sync.WaitGroup // background work that outlives its request
}

// New returns the accounts of a server.
func New(o Options) *Accounts {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost
	}
	a := &Accounts{Options: o, hashing: make(chan struct{}, maxHashing), known: make(chan struct{}, 1)}
	a.dummy = o.Cost.hash("", make([]byte, saltSize))
	return a
}

// Close waits for background work, such as logging refused sign-ins.
func (a *Accounts) Close() { a.work.Wait() }

// Tidy deletes expired sessions, links, tokens and attempts. Call it about once an hour.
func (a *Accounts) Tidy(ctx context.Context) error {
	now := a.Now()
	return a.Store.Tidy(ctx, now, now.Add(-SessionLife), now.Add(-sessionIdle), now.Add(-tokenKept))
}

// record writes an entry to the activity log.
func (a *Accounts) record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error {
	if a.ActivityLog == nil {
		return nil
	}
	if err := a.ActivityLog.Record(ctx, by, verb, object, detail); err != nil {
		return fmt.Errorf("record %s: %w", verb, err)
	}
	return nil
}

// secretSize is the number of random bytes in a token of any kind.
const secretSize = 32

var errSecret = errors.New("not a token")

// secret returns a new random token as text, and its hash.
func (a *Accounts) secret(prefix string) (text string, hash []byte, err error) {
	b := make([]byte, secretSize)
	if _, err := io.ReadFull(a.Rand, b); err != nil {
		return "", nil, fmt.Errorf("make token: %w", err)
	}
	text = prefix + base64.RawURLEncoding.EncodeToString(b)
	return text, hashOf(text), nil
}

// hashOf returns the stored hash of a random token. A fast hash is enough, because a 256-bit token
// cannot be guessed.
func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// isSecret returns an error if text is not well-formed as a token, so that malformed ones cost no
// query.
func isSecret(prefix, text string) error {
	body, ok := strings.CutPrefix(text, prefix)
	b, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if !ok || err != nil || len(b) != secretSize {
		return errSecret
	}
	return nil
}

// newID returns a random UUID.
func (a *Accounts) newID() (uuid.UUID, error) {
	id, err := uuid.NewRandomFromReader(a.Rand)
	if err != nil {
		return uuid.Nil, fmt.Errorf("make id: %w", err)
	}
	return id, nil
}
