// Package issuers asks now and then whether the issuers answer that visitors of open and coming rooms need: the page
// of each foreign issuer, and the services on which the server's own issuer depends.
//
// Organizers choose the addresses of pages, so they are asked through a guard (package outbound), with bounds. Anything
// but an error of the server counts as an answer: only a visitor with an account can find out whether the page works.
package issuers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/outbound"
	"github.com/proofline/proofline/internal/timing"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

// Soon is how long before its opening a room's issuers are asked for the first time.
const Soon = 24 * time.Hour

const (
	interval   = 30 * time.Second // between rounds
	askTimeout = 5 * time.Second  // of one request
	atOnce     = 8                // requests at the same time
	// minFailures is the number of failures in a row after which an issuer is away: one may be a hiccup.
	minFailures = 2
)

// State is what is known of an issuer.
type State int

// The states of an issuer.
const (
	Unknown   State = iota // it has not been asked yet, or has failed once
	Forbidden              // the operator does not allow this server to ask at that address
	Present                // it answers
	Absent                 // its server answers that there is no such page
	Away                   // it does not answer
)

// Finding is what is known of the issuer of one method of a room.
type Finding struct {
	Method string
	Name   string // of who is asked, such as a host
	IsOwn  bool   // the server's own issuer, which needs a service that is asked
	State  State
	Reason string    // why it is Away, such as "the connection failed"
	Since  time.Time // of the first failure, if it is Away
}

// Service is what the server's own issuer needs to confirm visitors. It is chosen by the operator.
type Service struct {
	Name string
	Ask  func(context.Context) error // nil error: it answers
}

// Options configures [New]. All fields are required but Allowed.
type Options struct {
	Rooms *room.Rooms
	// Own returns the service that the server's own issuer needs for a method of a room; nil: none.
	Own func(slug string, m credential.Method) *Service
	// Guard allows addresses of pages.
	Guard outbound.Guard
	Log   *slog.Logger
}

// Watch asks the issuers of a node's rooms. It is safe for concurrent use, except for Run and Round. A nil Watch asks
// nothing.
type Watch struct {
	Options
	client *outbound.Client

	mu    sync.Mutex // guards the fields below
	known map[string]*record
	round uint64 // the present one
}

// record is what is known of an address or a service.
type record struct {
	asked    uint64 // the latest round in which it was asked
	state    State
	failures int // in a row
	reason   string
	since    time.Time // of the first failure in a row
}

// New returns a watch that has not asked anything.
func New(o Options) *Watch {
	return &Watch{Options: o, known: map[string]*record{},
		client: o.Guard.Client(outbound.Options{Timeout: askTimeout, Idle: atOnce, IdleAHost: 1})}
}

// Run asks until ctx is done.
func (w *Watch) Run(ctx context.Context) {
	timing.Every(ctx, interval, w.Round)
	w.client.Close()
}

// target is who confirms visitors for a method.
type target struct {
	method, name string
	isOwn        bool
	key          string // of what is known; the same for all rooms that need it
	org          uuid.UUID
	host         string // of a page, as it is counted
	ask          func(context.Context) error
}

// target returns who confirms visitors on an issuer's page; false: nobody but this server.
func (w *Watch) target(r *room.Room, m credential.Method, i setting.Issuer) (t target, ok bool) {
	page := i.URL.String()
	if r.Issuer == nil || r.Issuer.Page(r.Slug, m.Name) != page {
		ask := func(ctx context.Context) error { return w.get(ctx, page) }
		return target{m.Name, i.URL.Host, false, page, r.Owner.Org, hostOf(i.URL.Hostname()), ask}, true
	}
	if s := w.Own(r.Slug, m); s != nil {
		return target{m.Name, s.Name, true, s.Name, r.Owner.Org, "", s.Ask}, true
	}
	return target{}, false
}

// targets lists who confirms visitors for the methods that a room takes now, or soon.
func (w *Watch) targets(r *room.Room) (list []target) {
	s, policy, now := r.Snapshot(), r.Policy(), r.Now()
	if s.Ended || s.Door == nil || s.Opens.Sub(now) > Soon || s.Closes != nil && !now.Before(*s.Closes) {
		return nil
	}
	settings, _ := r.Settings()
	for _, m := range s.Door.Methods {
		isNeeded := slices.Contains(policy.Lots, m.Name)
		for _, l := range s.Lanes {
			isNeeded = isNeeded || slices.Contains(l.Needs, m.Name)
		}
		if i, ok := settings.Issuer(m.Name); ok && isNeeded && (m.Limit == 0 || m.Taken < m.Limit) {
			if t, ok := w.target(r, m.Method, i); ok {
				list = append(list, t)
			}
		}
	}
	return list
}

// Round asks the issuers that rooms need, as many as one round takes.
func (w *Watch) Round(ctx context.Context) {
	var needed []target
	for _, r := range w.Rooms.Loaded() {
		needed = append(needed, w.targets(r)...)
	}
	w.ask(ctx, w.next(needed))
}

// next begins a round. It forgets what no room needs any more, and returns whom to ask.
func (w *Watch) next(needed []target) []target {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.round++
	known := map[string]*record{}
	for _, t := range needed {
		if known[t.key] = w.known[t.key]; known[t.key] == nil {
			known[t.key] = &record{}
		}
	}
	w.known = known
	drawn := draw(needed, func(key string) uint64 { return known[key].asked })
	for _, t := range drawn {
		known[t.key].asked = w.round
	}
	return drawn
}

func (w *Watch) ask(ctx context.Context, drawn []target) {
	var asking sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for _, t := range drawn {
		free <- struct{}{}
		asking.Go(func() {
			defer func() { <-free }()
			limited, cancel := context.WithTimeout(ctx, askTimeout)
			defer cancel()
			err := t.ask(limited)
			if ctx.Err() == nil {
				w.keep(t, err)
			}
		})
	}
	asking.Wait()
}

// errAbsent is returned for the status of a page that does not exist.
var errAbsent = errors.New("there is no such page")

// get asks for a page. The address is an organizer's.
func (w *Watch) get(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if errors.Is(err, outbound.ErrAddress) {
		return outbound.ErrAddress
	}
	if err != nil {
		return outbound.Hide(ctx, err)
	}
	_ = resp.Body.Close() // not read
	return verdict(resp.StatusCode)
}

// verdict returns what the status of a page says.
func verdict(status int) error {
	switch {
	case status == http.StatusNotFound || status == http.StatusGone:
		return errAbsent
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("it responded with %s", strings.TrimSpace(fmt.Sprint(status, " ", http.StatusText(status))))
	}
	return nil
}

// keep keeps what an issuer answered.
func (w *Watch) keep(t target, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.known[t.key] // rounds do not overlap, so it is there
	before := known.state
	switch {
	case err == nil:
		*known = record{asked: known.asked, state: Present}
	case errors.Is(err, errAbsent):
		*known = record{asked: known.asked, state: Absent}
	case errors.Is(err, outbound.ErrAddress):
		*known = record{asked: known.asked, state: Forbidden}
	default:
		if known.failures == 0 {
			known.since = time.Now()
		}
		known.failures++
		known.reason = err.Error()
		if known.failures >= minFailures {
			known.state = Away
		}
	}
	if isAway := known.state == Away; isAway != (before == Away) {
		if isAway {
			w.Log.Warn("an issuer does not answer", "issuer", t.name, "err", outbound.Detail(err))
		} else {
			w.Log.Info("an issuer answers again", "issuer", t.name)
		}
	}
}

// Of returns what is known of the issuers that a room needs now, or soon.
func (w *Watch) Of(r *room.Room) (list []Finding) {
	if w == nil {
		return nil
	}
	for _, t := range w.targets(r) {
		known := w.about(t.key)
		list = append(list, Finding{t.method, t.name, t.isOwn, known.state, known.reason, known.since})
	}
	return list
}

func (w *Watch) about(key string) record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.known[key]; known != nil {
		return *known
	}
	return record{}
}

// IsAway reports whether the issuer of a confirmation is away.
func (w *Watch) IsAway(r *room.Room, c *room.Confirmation) bool {
	if w == nil {
		return false
	}
	t, ok := w.target(r, c.Method, c.Issuer)
	return ok && w.about(t.key).state == Away
}

// Count returns the number of issuers that are away.
func (w *Watch) Count() (away int) {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.known {
		if known.state == Away {
			away++
		}
	}
	return away
}

// Text says what is known, and what to do; the latter is empty if all is well.
func (f *Finding) Text() (text, do string) {
	who := "The issuer at " + f.Name
	if f.IsOwn {
		who = f.Name
	}
	switch f.State {
	case Present:
		return fmt.Sprintf("%s answers. Whether it confirms visitors for %s, only a visitor with an account can find out.", who, f.Method), ""
	case Absent:
		return fmt.Sprintf("%s answers that the page does not exist on which visitors get %s.", who, f.Method),
			"Open the page in a browser; if it does not open, correct its address in the room, or ask the issuer."
	case Forbidden:
		return fmt.Sprintf("%s, which visitors need for %s, cannot be checked: its address is not public.", who, f.Method),
			"Check it yourself, or have the operator allow its network with --webhook-networks."
	case Away:
		return fmt.Sprintf("%s has not answered since %s: %s. New visitors cannot show %s; those in line keep their places.",
			who, f.Since.UTC().Format("15:04 UTC"), f.Reason, f.Method), f.remedy()
	default:
		return fmt.Sprintf("%s, which visitors need for %s, has not answered yet.", who, f.Method),
			"It is asked when it is its turn: look again in a minute."
	}
}

func (f *Finding) remedy() string {
	if f.IsOwn {
		return "Have the operator look at it; meanwhile tell visitors with a message."
	}
	return "Call the issuer, and tell visitors with a message. If it has moved, correct the address of its page in the room."
}
