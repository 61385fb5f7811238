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
	"github.com/proofline/proofline/room/pgroom"
)

// QueueIt has admitted visitors of a room shown to a site whose connector is
// one of queue-it (KnownUser V3): they come with a queueittoken that the site's
// unchanged connector takes. It is no matter of the transcript.
type QueueIt struct {
	// CustomerID is the customer whose links lead to the room: 1 to 63 of A-Z,
	// a-z, 0-9 and -.
	CustomerID string `json:"customer_id"`
	// Extend leaves it to the site's configuration how long visitors stay. Else
	// they stay as long as a session lasts, as the room counts them.
	Extend bool `json:"extend"`
	// WithPass gives them a pass as well, for a site that moves to a connector of
	// ours.
	WithPass bool `json:"with_pass"`
}

const (
	// MinQueueItKey is the least length of the secret key that a site shares with
	// its room, in visible characters of ASCII.
	MinQueueItKey = 32
	// MaxQueueItKey is the most.
	MaxQueueItKey = 200
	// queueItLife is how long a token can be shown to the site at most. Whoever
	// is later, or has lost it, claims again.
	queueItLife = 5 * time.Minute

	queueItPurpose = "queue-it" // of the sealed key
)

var (
	customerForm   = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)
	queueItKeyForm = regexp.MustCompile(fmt.Sprintf(`^[!-~]{%d,%d}$`, MinQueueItKey, MaxQueueItKey))
)

// storedQueueIt is what the settings have of it: the key is sealed, and a
// member of its own, so that it stays when the others change.
type storedQueueIt struct {
	QueueIt *QueueIt `json:"queue_it"`
	Key     []byte   `json:"queue_it_key,omitempty"`
}

// isSet tells whether tokens can be made.
func (s *storedQueueIt) isSet() bool { return s.QueueIt != nil && len(s.Key) > 0 }

// QueueIt returns how the room speaks to connectors of queue-it; false: it does
// not.
func (r *Room) QueueIt() (QueueIt, bool) {
	s := &r.settings.Load().queueIt
	if !s.isSet() {
		return QueueIt{}, false
	}
	return *s.QueueIt, true
}

// SetQueueIt has the room speak to connectors of queue-it. The secret key is
// sealed and never shown; an empty one leaves that of before. Error:
// [*InvalidError].
func (r *Room) SetQueueIt(ctx context.Context, q QueueIt, secretKey string) error {
	if secretKey == "" {
		if err := r.rereadSettings(ctx); err != nil {
			return err
		}
	}
	if list := q.problems(secretKey, r.settings.Load().queueIt.isSet()); len(list) > 0 {
		return &InvalidError{list}
	}
	next := storedQueueIt{QueueIt: &q}
	if secretKey != "" {
		next.Key = r.flow.master.seal(r.ID, queueItPurpose, []byte(secretKey)).Sealed
	}
	return r.mergeSettings(ctx, next)
}

// ClearQueueIt ends that, and forgets the secret key.
func (r *Room) ClearQueueIt(ctx context.Context) error {
	return r.mergeSettings(ctx, map[string]any{"queue_it": nil, "queue_it_key": nil})
}

func (q *QueueIt) problems(secretKey string, hasKey bool) []fairness.Problem {
	var list []fairness.Problem
	if !customerForm.MatchString(q.CustomerID) {
		list = append(list, fairness.Problem{Field: "customer_id", Detail: "must be 1 to 63 of A-Z, a-z, 0-9 and -"})
	}
	switch {
	case secretKey == "" && !hasKey:
		list = append(list, fairness.Problem{Field: "secret_key", Detail: "is needed"})
	case secretKey != "" && !queueItKeyForm.MatchString(secretKey):
		detail := fmt.Sprintf("must be %d to %d visible characters of ASCII, without spaces", MinQueueItKey, MaxQueueItKey)
		list = append(list, fairness.Problem{Field: "secret_key", Detail: detail})
	}
	return list
}

// rereadSettings reads the settings, whatever is known of them.
func (r *Room) rereadSettings(ctx context.Context) error {
	stored, err := r.texts.Settings(ctx, r.ID)
	if err != nil || stored.Version == 0 {
		return err
	}
	return r.takeSettings(stored)
}

// QueueItToken returns the queueittoken of an admitted ticket: "" when the room
// speaks to no connector of queue-it. It can be shown for five minutes, at most as
// long as the session lasts, and more than once: those connectors ask nobody. As
// they redeem nothing, the place is kept for the session from here on. Errors:
// [ErrMasterKey], and those of the database.
//
// The form is that of KnownUser V3, fields name_value with ~ in between, of
// which the last is the HMAC-SHA-256 of those before it, in hexadecimal
// (https://github.com/queueit/KnownUser.V3.Javascript, src/QueueITHelpers.ts
// and src/UserInQueueService.ts).
func (r *Room) QueueItToken(ctx context.Context, st fairness.Standing) (string, error) {
	s := &r.settings.Load().queueIt
	if !s.isSet() {
		return "", nil
	}
	key, err := r.flow.master.open(r.ID, pgroom.Key{Purpose: queueItPurpose, Sealed: s.Key})
	if err != nil {
		return "", fmt.Errorf("queue-it key of room %s: %w", r.Slug, err)
	}
	kept, err := r.flow.store.Keep(ctx, r.record(st))
	if err != nil {
		return "", err
	}
	return queueItToken(key, r.Slug, st.Ticket, *s.QueueIt, r.Now(), time.UnixMilli(kept.Until)), nil
}

// queueItToken makes a token: the event, until when it can be shown, how long
// the visitor stays, and whose it is.
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
