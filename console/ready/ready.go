// Package ready checks what has to be right before a sale: the database and its settings, clocks, public randomness,
// witnesses, disk, address, alerts, the rooms that open soon, and the issuers that these need.
//
// A check changes nothing and takes a few seconds at most. Each has a result for people: what is the case, and, unless
// that is fine, what to do.
package ready

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/issuers"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/meter"
)

// State is the result of a check.
type State string

// The results of a check, from good to bad.
const (
	OK        State = "ok"
	Attention State = "attention" // a sale can run, with less than it could have
	Failed    State = "failed"    // visitors or the proof will suffer
)

// Check is one thing that was checked.
type Check struct {
	Name  string // such as "database settings"
	State State
	Text  string // what is the case, as a sentence
	Do    string // what to do; empty if State is OK
}

// Worst returns the worst result.
func Worst(checks []Check) State {
	worst := OK
	for _, c := range checks {
		if rank(c.State) > rank(worst) {
			worst = c.State
		}
	}
	return worst
}

func rank(s State) int { return slices.Index([]State{OK, Attention, Failed}, s) }

// limit bounds all checks together.
const limit = 8 * time.Second

// soon is how far ahead the rooms are looked at.
const soon = issuers.Soon

// Options configures [New].
type Options struct {
	Rooms *room.Rooms
	// Meter has what witnesses answered.
	Meter *meter.Meter
	// Conditions reads the database's settings, and Role whether the server could change its log.
	Conditions func(context.Context) (pglog.Conditions, error)
	Role       func(context.Context) error
	// IsPrivate reports whether the server runs its PostgreSQL itself.
	IsPrivate bool
	// Data is the data directory.
	Data string
	// PublicURL is where visitors reach the server.
	PublicURL string
	// HasOwner reports whether somebody can sign in to the console.
	HasOwner func(context.Context) (bool, error)
	// Recipients returns the number of addresses and webhooks that get an organization's alerts.
	Recipients func(context.Context, account.Actor) (int, error)
	// Issuers returns what is known of the issuers that a room needs; nil: nothing is.
	Issuers func(*room.Room) []issuers.Finding
	// Client fetches PublicURL; nil: a default one.
	Client *http.Client
}

// Ready checks a server. It is safe for concurrent use.
type Ready struct{ o Options }

// New returns the checks of a server.
func New(o Options) *Ready {
	if o.Client == nil {
		o.Client = &http.Client{Timeout: limit / 2}
	}
	return &Ready{o}
}

// Checks returns what an actor may know: those who act in the first organization about the server and their rooms,
// others about their rooms and what these need.
func (r *Ready) Checks(ctx context.Context, actor account.Actor) ([]Check, error) {
	if !actor.May(account.Operate) {
		return nil, account.ErrForbidden
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	about := []func(context.Context, account.Actor) []Check{r.database, r.clock, r.beacon, r.witnesses}
	if actor.Org == account.MainOrg {
		about = append(about, r.settings, r.role, r.marks, r.disk, r.address, r.owner)
	}
	about = append(about, r.alerts, r.rooms)
	found := make([][]Check, len(about))
	var running sync.WaitGroup
	for i, check := range about {
		running.Go(func() { found[i] = check(ctx, actor) })
	}
	running.Wait()
	return slices.Concat(found...), nil
}

func one(name string, s State, text, do string) []Check { return []Check{{name, s, text, do}} }

func (r *Ready) database(context.Context, account.Actor) []Check {
	const name = "database"
	h := r.o.Rooms.Health()
	took := h.Took.Round(100 * time.Microsecond)
	switch {
	case !h.Answers:
		return one(name, Failed, "The database does not answer.",
			"Start it, or see ProoflineDatabaseDown in the runbook.")
	case h.Stuck > 0:
		return one(name, Failed, fmt.Sprintf("%s cannot store entries.", count(h.Stuck, "room")),
			"The server's log has the reason.")
	case h.Held > 0:
		return one(name, Failed, isAre(h.Held, "log")+" held: the database lacks entries that were published.",
			"Restore the database, or run: proofline recover ROOM")
	case h.Took > 100*time.Millisecond:
		return one(name, Attention, fmt.Sprintf("The database took %s to answer.", took),
			"Each join waits for it: look at its disk, and at the network to it.")
	}
	return one(name, OK, fmt.Sprintf("The database answers in %s.", took), "")
}

// minWAL is the reserve of segments that a sale needs, so that commits do not create them.
const minWAL = 1 << 30

func (r *Ready) settings(ctx context.Context, _ account.Actor) []Check {
	const name = "database settings"
	c, err := r.o.Conditions(ctx)
	if err != nil {
		return one(name, Failed, "The settings cannot be read: "+err.Error()+".", "Look at the database.")
	}
	var list []Check
	add := func(s State, text, do string) { list = append(list, Check{name, s, text, do}) }
	if !c.Fsync || !c.FullPages {
		add(Failed, "fsync or full_page_writes is off: a power cut loses receipts.", "Turn both on in postgresql.conf.")
	}
	if pool := r.o.Rooms.Health().Pool.Max; c.MaxConnections < pool+10 {
		add(Failed, fmt.Sprintf("max_connections is %d, and this server alone may open %d.", c.MaxConnections, pool),
			"Raise max_connections to the sum of all servers' pools, and ten.")
	}
	if !r.o.IsPrivate && c.MinWAL < minWAL {
		add(Attention, fmt.Sprintf("min_wal_size is %s: commits wait for new files.", size(c.MinWAL)),
			"Set min_wal_size = 1GB (docs/operate/POSTGRESQL.md).")
	}
	if !r.o.IsPrivate && c.Synchronous == 0 {
		add(Attention, "No standby is synchronous: a failover may lose entries, and their rooms would be held.",
			"Set synchronous_standby_names, or accept that a lost primary means proofline recover.")
	}
	if !c.IsArchiving {
		add(Attention, "The write-ahead log is not archived: a restored backup lacks what came after it.",
			"Set up pgBackRest or another archive, or keep a copy of the transcript elsewhere: proofline-verify watch.")
	}
	if len(list) == 0 {
		add(OK, fmt.Sprintf("PostgreSQL %d is set up for a sale.", c.Version/10_000), "")
	}
	return list
}

func (r *Ready) role(ctx context.Context, _ account.Actor) []Check {
	const name = "database role"
	err := r.o.Role(ctx)
	if role := (*pglog.RoleError)(nil); errors.As(err, &role) {
		return one(name, Attention, "The server could change its transcripts: its role may do more than append.",
			"Let it log in as "+pglog.Role+", and pass the owner's URL with --owner-database-url.")
	}
	if err != nil {
		return one(name, Failed, "The role cannot be checked: "+err.Error()+".", "Look at the database.")
	}
	return one(name, OK, "The server can add entries, and change none.", "")
}

func (r *Ready) clock(context.Context, account.Actor) []Check {
	const name = "clock"
	h := r.o.Rooms.Health()
	ahead := h.Ahead.Round(time.Millisecond)
	switch {
	case h.Step != 0:
		return one(name, Failed, fmt.Sprintf("The database's clock has jumped by %s.", h.Step.Round(time.Second)),
			"Correct it, or run: proofline clock confirm")
	case ahead.Abs() > time.Second:
		return one(name, Attention, fmt.Sprintf("The rooms' time differs from this machine's clock by %s.", ahead),
			"One of the two clocks is wrong: look at NTP on both machines.")
	}
	return one(name, OK, fmt.Sprintf("The clocks of database and server differ by %s.", ahead.Abs()), "")
}

func (r *Ready) beacon(context.Context, account.Actor) []Check {
	const name = "beacon"
	if len(r.o.Rooms.Chains) == 0 {
		return one(name, Attention, "Public randomness is off: the operator could choose draws, and audits say so.",
			"Remove --beacon-relays none.")
	}
	var list []Check
	for _, chain := range r.o.Rooms.Chains {
		if err := chain.Err(); err != nil {
			list = append(list, Check{name, Failed, fmt.Sprintf("%s cannot be reached: %s.", chain.Name(), err),
				"Draws will wait for it: open the way to the relays, or name others with --beacon-relays."})
		} else {
			list = append(list, Check{name, OK, chain.Name() + " answers.", ""})
		}
	}
	return list
}

// maxOffset is how far off a witness's clock may be.
const maxOffset = 5 * time.Second

func (r *Ready) witnesses(context.Context, account.Actor) []Check {
	const name = "witnesses"
	if len(r.o.Rooms.Witnesses) == 0 {
		return one(name, Attention, "No witness signs the transcripts: only those who watch could notice a second history.",
			"Ask an independent party to run one, and name it with --witnesses.")
	}
	known := r.o.Meter.Witnesses()
	var list []Check
	for _, w := range r.o.Rooms.Witnesses {
		title := w.Key.Name()
		switch seen, ok := known[title]; {
		case !ok:
			list = append(list, Check{name, OK, title + " has not been asked yet: no room has entries.", ""})
		case !seen.Cosigned:
			list = append(list, Check{name, Failed, title + " does not cosign.",
				"Ask those who run it whether it knows the rooms' keys; its log has the reason."})
		case seen.Ahead.Abs() > maxOffset:
			list = append(list, Check{name, Attention, fmt.Sprintf("The clock of %s is off by %s.", title, seen.Ahead),
				"Its cosignatures may not count for draws: ask those who run it to correct the clock."})
		default:
			list = append(list, Check{name, OK, title + " cosigns.", ""})
		}
	}
	return list
}

func (r *Ready) marks(context.Context, account.Actor) []Check {
	const name = "marks"
	if !r.o.Rooms.Health().Marked {
		return one(name, Failed, "Marks are not stored: after a restart this server cannot notice that the database went back in time.",
			"Give it a data directory that persists: --data.")
	}
	return one(name, OK, "The server remembers outside the database how far it has seen each log.", "")
}

// Free space below which there is something to do.
const (
	scarce = 5 << 30
	spent  = 1 << 30
)

func (r *Ready) disk(context.Context, account.Actor) []Check {
	const name, do = "disk", "Make room, or move the directory. A million visitors take 190 MB in the database, and as much WAL."
	free, err := freeBytes(r.o.Data)
	where := "the data directory"
	if r.o.IsPrivate {
		where = "the data directory, with the database"
	}
	switch text := fmt.Sprintf("%s of disk are free for %s.", size(free), where); {
	case err != nil:
		return one(name, Attention, "The free space is unknown: "+err.Error()+".", "Look at the disk of --data.")
	case free < spent:
		return one(name, Failed, text, do)
	case free < scarce:
		return one(name, Attention, text, do)
	default:
		return one(name, OK, text, "")
	}
}

// minValidity is how long a certificate should be valid.
const minValidity = 14 * 24 * time.Hour

func (r *Ready) address(ctx context.Context, _ account.Actor) []Check {
	const name = "address"
	u, err := url.Parse(r.o.PublicURL)
	if err != nil {
		return one(name, Failed, "The public URL is not one.", "Correct --public-url.")
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return one(name, Attention, "Only this machine reaches "+r.o.PublicURL+".",
			"Set --public-url to the address for visitors.")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.o.PublicURL+"/livez", http.NoBody)
	if err != nil {
		return one(name, Failed, "The public URL is not one.", "Correct --public-url.")
	}
	answer, err := r.o.Client.Do(req)
	if err != nil {
		return one(name, Failed, fmt.Sprintf("The server does not reach itself at %s: %s.", r.o.PublicURL, reason(err)),
			"Look at the DNS, at the certificate and at the proxy in front.")
	}
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return one(name, Failed, fmt.Sprintf("%s/livez answers %d.", r.o.PublicURL, answer.StatusCode),
			"Another program answers there, or the proxy in front does not pass the path on.")
	case u.Scheme != "https":
		return one(name, Failed, r.o.PublicURL+" is not encrypted: browsers keep no secrets and check no places there.",
			"Put TLS in front (docs/EDGE.md).")
	}
	if left := validity(answer.TLS); left < minValidity {
		return one(name, Attention, fmt.Sprintf("The certificate of %s ends in %s.", u.Host, days(left)),
			"Renew it before the sale.")
	}
	return one(name, OK, "Visitors reach "+r.o.PublicURL+".", "")
}

func validity(state *tls.ConnectionState) time.Duration {
	if state == nil || len(state.PeerCertificates) == 0 {
		return 0
	}
	return time.Until(state.PeerCertificates[0].NotAfter)
}

// reason returns the cause of a failed request, without its URL.
func reason(err error) string {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return strings.TrimSuffix(err.Error(), ".")
}

func (r *Ready) owner(ctx context.Context, _ account.Actor) []Check {
	const name = "accounts"
	switch has, err := r.o.HasOwner(ctx); {
	case err != nil:
		return one(name, Attention, "The accounts cannot be read.", "Look at the database.")
	case !has:
		return one(name, Attention, "Nobody has an account yet.", "Open the link in DIR/setup-link.")
	}
	return one(name, OK, "The console has an owner.", "")
}

func (r *Ready) alerts(ctx context.Context, actor account.Actor) []Check {
	const name = "alerts"
	switch n, err := r.o.Recipients(ctx, actor); {
	case err != nil:
		return one(name, Attention, "The alerts' settings cannot be read.", "Look at the database.")
	case n == 0:
		return one(name, Attention, "Nobody gets alerts.",
			"Name an address or a webhook under Alerts, and send a test.")
	default:
		return one(name, OK, fmt.Sprintf("Alerts go to %s.", count(n, "recipient")), "")
	}
}

// rooms looks at the actor's rooms that have not ended and open soon, or are open.
func (r *Ready) rooms(_ context.Context, actor account.Actor) []Check {
	loaded := r.o.Rooms.Loaded()
	slices.SortFunc(loaded, func(a, b *room.Room) int { return cmp.Compare(a.Slug, b.Slug) })
	var list []Check
	for _, found := range loaded {
		s := found.Snapshot()
		opens := time.UnixMilli(int64(found.Policy().Opens))
		if found.Owner.Org != actor.Org || s.Ended || found.Owner.RehearsalOf != nil || time.Until(opens) > soon {
			continue
		}
		list = append(list, r.room(found, opens))
		list = append(list, r.issuers(found)...)
	}
	if len(list) == 0 {
		return one("rooms", OK, "No room is open or opens within a day.", "")
	}
	return list
}

func (r *Ready) room(found *room.Room, opens time.Time) Check {
	c := Check{Name: "room " + found.Slug, State: Attention}
	p := found.Policy()
	settings, _ := found.Settings()
	when := "It is open."
	if left := time.Until(opens); left > 0 {
		when = fmt.Sprintf("It opens in %s.", left.Round(time.Minute))
	}
	switch {
	case p.Beacon == nil:
		c.Text, c.Do = when+" Its draws use no public randomness.", "This cannot be changed: publish it anew to draw with a beacon."
	case len(settings.Targets) == 0:
		c.Text, c.Do = when+" It has no target, so admitted visitors are sent nowhere.", "Add the address of the site to the room, unless your app takes the passes."
	case found.Snapshot().Paused:
		c.Text, c.Do = when+" Its calls are paused.", "Resume them in time."
	default:
		c.State, c.Text = OK, when
	}
	return c
}

// states are the results for states of issuers; the others need attention.
var states = map[issuers.State]State{issuers.Present: OK, issuers.Away: Failed}

// issuers looks at the issuers that visitors of a room need.
func (r *Ready) issuers(of *room.Room) (list []Check) {
	if r.o.Issuers == nil {
		return nil
	}
	for _, f := range r.o.Issuers(of) {
		c := Check{Name: "issuer of " + of.Slug + ": " + f.Method, State: cmp.Or(states[f.State], Attention)}
		c.Text, c.Do = f.Text()
		list = append(list, c)
	}
	return list
}

func size(n uint64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func days(d time.Duration) string { return count(int(max(0, d)/(24*time.Hour)), "day") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int, what string) string {
	if n == 1 {
		return count(n, what) + " is"
	}
	return count(n, what) + " are"
}
