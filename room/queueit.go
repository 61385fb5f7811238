package room

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room/pgroom"
)

// QueueIt configures a room for sites with a queue-it connector (KnownUser V3): admitted visitors return with
// a queueittoken that the unchanged connector accepts. It is not recorded in the transcript.
type QueueIt struct {
	// CustomerID is the queue-it customer whose links point to the room: 1 to 63 of A-Z, a-z, 0-9 and -.
	CustomerID string `json:"customer_id"`
	// Extend lets the site's configuration decide how long visitors stay. Otherwise they stay as long as the
	// room's session lasts.
	Extend bool `json:"extend"`
	// WithPass also gives visitors a pass, for a site that is migrating to our connector.
	WithPass bool `json:"with_pass"`
}

const (
	// MinQueueItKey is the minimum length of the secret key that a site shares with its room, in visible
	// ASCII characters.
	MinQueueItKey = 32
	// MaxQueueItKey is the maximum length.
	MaxQueueItKey = 200
	// queueItLife is how long a token is valid at most. A visitor who comes later, or has lost it, claims
	// again.
	queueItLife = 5 * time.Minute

	queueItPurpose = "queue-it" // purpose of the sealed key
)

var (
	customerForm   = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
	queueItKeyForm = regexp.MustCompile(fmt.Sprintf(`^[!-~]{%d,%d}$`, MinQueueItKey, MaxQueueItKey))
)

// storedQueueIt is how the settings store it. The sealed key is a member of its own, so that it stays when
// the others change.
type storedQueueIt struct {
	QueueIt *QueueIt `json:"queue_it"`
	Key     []byte   `json:"queue_it_key,omitempty"`
}

// isSet reports whether tokens can be made.
func (s *storedQueueIt) isSet() bool { return s.QueueIt != nil && len(s.Key) > 0 }

// QueueIt returns the room's queue-it configuration, if it has one.
func (r *Room) QueueIt() (QueueIt, bool) {
	s := &r.settings.Load().queueIt
	if !s.isSet() {
		return QueueIt{}, false
	}
	return *s.QueueIt, true
}

// SetQueueIt configures the room for queue-it connectors. The secret key is sealed and never shown; an empty
// one keeps the previous key. Error: [*invalid.Error].
func (r *Room) SetQueueIt(ctx context.Context, q QueueIt, secretKey string) error {
	if secretKey == "" {
		if err := r.rereadSettings(ctx); err != nil {
			return err
		}
	}
	if list := q.problems(secretKey, r.settings.Load().queueIt.isSet()); len(list) > 0 {
		return list.Err()
	}
	next := storedQueueIt{QueueIt: &q}
	if secretKey != "" {
		next.Key = r.flow.master.SealFor(r.ID, queueItPurpose, []byte(secretKey)).Sealed
	}
	return r.mergeSettings(ctx, next)
}

// ClearQueueIt removes the queue-it configuration and its secret key.
func (r *Room) ClearQueueIt(ctx context.Context) error {
	return r.mergeSettings(ctx, map[string]any{"queue_it": nil, "queue_it_key": nil})
}

func (q *QueueIt) problems(secretKey string, hasKey bool) invalid.List {
	var list invalid.List
	if !customerForm.MatchString(q.CustomerID) {
		list.Add("customer_id", "must be 1 to 63 of A-Z, a-z, 0-9 and -")
	}
	switch {
	case secretKey == "" && !hasKey:
		list.Add("secret_key", "is needed")
	case secretKey != "" && !queueItKeyForm.MatchString(secretKey):
		detail := fmt.Sprintf("must be %d to %d visible characters of ASCII, without spaces", MinQueueItKey,
			MaxQueueItKey)
		list.Add("secret_key", detail)
	}
	return list
}

// rereadSettings reads the settings from the database, whatever version is cached.
func (r *Room) rereadSettings(ctx context.Context) error {
	stored, err := r.texts.Settings(ctx, r.ID)
	if err != nil || stored.Version == 0 {
		return err
	}
	return r.takeSettings(stored)
}

// QueueItToken returns the queueittoken of an admitted ticket, or "" when the room is not configured for
// queue-it. The token is valid for five minutes, but not beyond the session, and may be used more than once,
// because those connectors do not redeem it. For the same reason the place is kept for the session from now
// on. Errors: [keys.ErrMasterKey], and those of the database.
//
// The form is that of KnownUser V3: fields name_value, separated by ~, the last one being the HMAC-SHA-256 of
// those before it, in hexadecimal (https://github.com/queueit/KnownUser.V3.Javascript, src/QueueITHelpers.ts
// and src/UserInQueueService.ts).
func (r *Room) QueueItToken(ctx context.Context, st fairness.Standing) (string, error) {
	s := &r.settings.Load().queueIt
	if !s.isSet() {
		return "", nil
	}
	key, err := r.flow.master.OpenFor(r.ID, pgroom.Key{Purpose: queueItPurpose, Sealed: s.Key})
	if err != nil {
		return "", fmt.Errorf("queue-it key of room %s: %w", r.Slug, err)
	}
	kept, err := r.flow.store.Keep(ctx, r.record(st))
	if err != nil {
		return "", err
	}
	return queueItToken(key, r.Slug, st.Ticket, *s.QueueIt, r.Now(), time.UnixMilli(kept.Until)), nil
}

// queueItToken returns a token with the event, the token's expiry, the length of the stay, and the ticket.
func queueItToken(key []byte, event string, t fairness.Ticket, q QueueIt, now, ends time.Time) string {
	until := now.Add(queueItLife)
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
