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

// Sealer seals secrets at rest, each for a purpose; room.MasterKey does.
type Sealer interface {
	Seal(purpose string, secret []byte) []byte
	Open(purpose string, sealed []byte) ([]byte, error)
}

// Acts keeps the log of what operators did. Details hold no secrets.
type Acts interface {
	Record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error
}

// Mailer sends a mail of plain text.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}

// Resolver looks up TXT records; *net.Resolver does.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Options is what [New] needs. Store, Sealer and URL must be given.
type Options struct {
	Store  *pgaccount.Store
	Sealer Sealer
	Acts   Acts // nil: deeds are not recorded
	// URL is the address of the server, such as "https://queue.example.com",
	// without a slash at its end. Links begin with it.
	URL string
	// OnSetup is called when the first owner is made here; nil: nothing is.
	OnSetup  func()
	Host     string      // of the server, which nobody can claim; may have a port
	Mailer   Mailer      // nil: links are copied by hand
	OIDC     *OIDCConfig // nil: no sign-in by OpenID Connect
	Resolver Resolver    // nil: that of the system
	Now      func() time.Time
	Rand     io.Reader
	Log      *slog.Logger
	Cost     Cost // of passwords; the zero value: [DefaultCost]
}

// Accounts is everything about accounts on one server. Safe for concurrent
// use; any number of servers share a database.
type Accounts struct {
	Options
	hashing  chan struct{} // holds one value for each password that is being hashed
	dummy    string        // hash of no password
	tokens   tokenCache
	hosts    cache[string, uuid.UUID]
	names    cache[uuid.UUID, string] // of organizations
	provider provider
	work     sync.WaitGroup // what goes on after an answer
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
	a := &Accounts{Options: o, hashing: make(chan struct{}, maxHashing)}
	a.dummy = o.Cost.hash("", make([]byte, saltSize))
	return a
}

// Close waits for what goes on after answers, such as records of refused
// sign-ins.
func (a *Accounts) Close() { a.work.Wait() }

// Tidy removes what is over. Somebody calls it once in a while, such as once
// an hour.
func (a *Accounts) Tidy(ctx context.Context) error {
	now := a.Now()
	return a.Store.Tidy(ctx, now, now.Add(-SessionLife), now.Add(-sessionIdle), now.Add(-tokenKept))
}

// record notes a deed.
func (a *Accounts) record(ctx context.Context, by Actor, verb, object string, detail map[string]any) error {
	if a.Acts == nil {
		return nil
	}
	if err := a.Acts.Record(ctx, by, verb, object, detail); err != nil {
		return fmt.Errorf("record %s: %w", verb, err)
	}
	return nil
}

// secretSize is how many random bytes tokens of all kinds have.
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

// hashOf is what is stored of a random token: it has too many values to be
// guessed, so a quick hash will do.
func hashOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// isSecret tells whether a text has the form of a token, so that nothing else
// is looked for.
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
