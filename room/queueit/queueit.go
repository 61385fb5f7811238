// Package queueit lets a room serve sites with a queue-it connector (KnownUser V3).
package queueit

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
)

// Config configures a room for sites with a queue-it connector (KnownUser V3): admitted visitors return with
// a queueittoken that the unchanged connector accepts. It is not recorded in the transcript.
type Config struct {
	// CustomerID is the queue-it customer whose links point to the room: 1 to 63 of A-Z, a-z, 0-9 and -.
	CustomerID string `json:"customer_id"`
	// Extend lets the site's configuration decide how long visitors stay. Otherwise they stay for the length of the
	// room's session.
	Extend bool `json:"extend"`
	// WithPass also gives visitors a pass, for a site that is migrating to our connector.
	WithPass bool `json:"with_pass"`
}

const (
	// MinKey is the minimum length of the secret key that a site shares with its room, in visible
	// ASCII characters.
	MinKey = 32
	// MaxKey is the maximum length.
	MaxKey = 200
	// tokenLife is the maximum validity of a token. A visitor who arrives later or has lost the token
	// claims again.
	tokenLife = 5 * time.Minute

	keyPurpose = "queue-it" // purpose of the sealed key
)

var (
	customerForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
	keyForm      = regexp.MustCompile(fmt.Sprintf(`^[!-~]{%d,%d}$`, MinKey, MaxKey))
)

// Stored is the form in which the settings store the configuration. The sealed key is a separate member, so that
// it stays when the others change.
type Stored struct {
	Config *Config `json:"queue_it"`
	Key    []byte  `json:"queue_it_key,omitempty"`
}

// isSet reports whether tokens can be issued.
func (s *Stored) isSet() bool { return s.Config != nil && len(s.Key) > 0 }

// Settings are the settings of the room.
type Settings interface {
	// QueueIt returns the part that this package stores. The caller must not change it.
	QueueIt() *Stored
	// Reread reads the settings from the database.
	Reread(ctx context.Context) error
	// Merge stores members of the settings.
	Merge(ctx context.Context, members any) error
}

// Sessions are the sessions of the room.
type Sessions interface {
	// Keep extends the session of an admitted ticket as if its pass were redeemed, and returns when it ends.
	Keep(ctx context.Context, st fairness.Standing) (until time.Time, err error)
}

// Connection connects one room with a queue-it connector. It is safe for concurrent use.
type Connection struct {
	room     uuid.UUID
	slug     string
	master   *keys.MasterKey
	settings Settings
	sessions Sessions
	now      func() time.Time
}

// New returns the connection of a room. now returns the time of the room.
func New(room uuid.UUID, slug string, master *keys.MasterKey, settings Settings, sessions Sessions,
	now func() time.Time) *Connection {
	return &Connection{room, slug, master, settings, sessions, now}
}

// Config returns the room's configuration, if it has one.
func (c *Connection) Config() (Config, bool) {
	s := c.settings.QueueIt()
	if !s.isSet() {
		return Config{}, false
	}
	return *s.Config, true
}

// Set configures the room. The secret key is sealed and never shown; an empty
// one keeps the previous key. Error: [*invalid.Error].
func (c *Connection) Set(ctx context.Context, q Config, secretKey string) error {
	if secretKey == "" {
		if err := c.settings.Reread(ctx); err != nil {
			return err
		}
	}
	if list := q.problems(secretKey, c.settings.QueueIt().isSet()); len(list) > 0 {
		return list.Err()
	}
	next := Stored{Config: &q}
	if secretKey != "" {
		next.Key = c.master.SealFor(c.room, keyPurpose, []byte(secretKey)).Sealed
	}
	return c.settings.Merge(ctx, next)
}

// Clear removes the configuration and its secret key.
func (c *Connection) Clear(ctx context.Context) error {
	return c.settings.Merge(ctx, map[string]any{"queue_it": nil, "queue_it_key": nil})
}

func (q *Config) problems(secretKey string, hasKey bool) invalid.List {
	var list invalid.List
	if !customerForm.MatchString(q.CustomerID) {
		list.Add("customer_id", "must be 1 to 63 of A-Z, a-z, 0-9 and -")
	}
	switch {
	case secretKey == "" && !hasKey:
		list.Add("secret_key", "is needed")
	case secretKey != "" && !keyForm.MatchString(secretKey):
		detail := fmt.Sprintf("must be %d to %d visible characters of ASCII, without spaces", MinKey,
			MaxKey)
		list.Add("secret_key", detail)
	}
	return list
}

// Token returns the queueittoken of an admitted ticket, or "" when the room is not configured for
// queue-it. The token is valid for five minutes, but not beyond the session, and may be used more than once,
// because those connectors do not redeem it. For the same reason the place is kept for the session from now
// on. Errors: [keys.ErrMasterKey], and those of the database.
//
// The form is that of KnownUser V3: fields name_value, separated by ~, the last one being the HMAC-SHA-256 of
// those before it, in hexadecimal (https://github.com/queueit/KnownUser.V3.Javascript, src/QueueITHelpers.ts
// and src/UserInQueueService.ts).
func (c *Connection) Token(ctx context.Context, st fairness.Standing) (string, error) {
	s := c.settings.QueueIt()
	if !s.isSet() {
		return "", nil
	}
	key, err := c.master.OpenFor(c.room, pgroom.Key{Purpose: keyPurpose, Sealed: s.Key})
	if err != nil {
		return "", fmt.Errorf("queue-it key of room %s: %w", c.slug, err)
	}
	until, err := c.sessions.Keep(ctx, st)
	if err != nil {
		return "", err
	}
	return newToken(key, c.slug, st.Ticket, *s.Config, c.now(), until), nil
}

// newToken returns a token with the event, the token's expiry, the length of the stay, and the ticket.
func newToken(key []byte, event string, t fairness.Ticket, q Config, now, ends time.Time) string {
	until := now.Add(tokenLife)
	if until.After(ends) {
		until = ends
	}
	token := "e_" + event + "~ts_" + strconv.FormatInt(until.Unix(), 10)
	if q.Extend {
		token += "~ce_true~q_" + t.String()
	} else {
		left := ends.Sub(now).Truncate(time.Second)
		minutes := max((left+time.Minute-1)/time.Minute, 1)
		token += "~ce_false~q_" + t.String() + "~cv_" + strconv.FormatInt(int64(minutes), 10)
	}
	token += "~rt_queue"
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(token)) // never fails
	return token + "~h_" + hex.EncodeToString(mac.Sum(nil))
}
