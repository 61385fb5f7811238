package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
)

// The attack: one script among many people.
const (
	attackTimeout = 6 * time.Minute // limits all rooms and their audits, which take about two minutes
	perSecond     = 900             // people of all rooms who join per second; joins last at least briefly
	briefly       = 8 * time.Second
	lastJoin      = time.Second  // before the draw, people no longer join
	drawing       = time.Minute  // limits the time from the end of joining until all places are published
	accounts      = 10           // of the script; each person has one
	invited       = 20           // one in so many people has a code
	soldOn        = 20           // one in so many codes is sold to the script
	fewestCodes   = 20           // that are given out
	minAsked      = 2 * accounts // tickets
	senders       = 32           // people who join a room at the same time; the script has half of them
	auditors      = 2            // verifiers that run at the same time
	unlikely      = 6            // standard deviations
)

// asked returns how many tickets the script asks for: one for ten people.
func asked(people int) int { return max(people/10, minAsked) }

// joining returns the time from the opening to the draw, in which so many people join all rooms.
func joining(people int) time.Duration {
	return max(time.Duration(people)*time.Second/perSecond, briefly).Round(time.Second)
}

// door is what the joins of a room need.
type door struct {
	slug   string
	needs  string // in the table
	desk   guard  // nil: a join needs nothing
	visits int    // people who want to join, and can
	holds  int    // accounts or codes of the script; 0: it needs none
}

// guard makes joins need a credential, and gives credentials to the people and the script.
type guard interface {
	guard(config map[string]any)
	serve(ctx context.Context, r *demoRoom) error
	vouch(account string, t fairness.Ticket) (credential.Credential, error)
}

// doors are those of the console's presets. A membership is an account of a club.
func doors(people int, d *desk) []door {
	codes := max(people/invited, fewestCodes)
	sold := codes / soldOn
	return []door{
		{slug: "open", needs: "nothing", visits: people},
		{slug: "work", needs: fmt.Sprintf("work of %d bits", workBits), desk: &worker{}, visits: people},
		{
			slug: "accounts", needs: fmt.Sprintf("an account; the script has %d", accounts),
			desk: d.offering("account"), visits: people, holds: accounts,
		},
		{
			slug: "codes", needs: fmt.Sprintf("a code; the script bought %d", sold), desk: d.offering("code"),
			visits: codes - sold, holds: sold,
		},
	}
}

// attack is a script's attempt to get many places in one room.
type attack struct {
	door
	from    networks
	number  int           // of the room
	length  time.Duration // of joining
	most    int           // tickets that the script gets
	room    *demoRoom
	checks  *checks
	opens   time.Time
	starts  time.Time
	tickets int // that the script asks for

	mu      sync.Mutex
	script  map[string]bool // tickets of the script that joined
	refused int             // joins of the script
	people  int             // who joined
	ahead   int             // tickets of the script among the first places
	report  *verifier.Report
}

// playAttacks rehearses the attack on rooms with each door, from each kind of networks, all at the same time, and
// compares them.
func (d *demo) playAttacks(ctx context.Context) error {
	return d.guarded(ctx, attackTimeout, func(ctx context.Context, _ context.CancelCauseFunc) error {
		k, err := openDesk(d.dir)
		if err != nil {
			return err
		}
		defer k.close()
		all := d.attacks(k)
		say := d.Narrator.Say
		say("The server listens on %s. An issuer vouches for accounts and codes, with a key of its own.", d.server.URL)
		say("The organizer creates %d rooms. In each, a script asks for %s tickets at the opening.", len(all),
			numeral.Group(asked(d.Visitors)))
		say("%s people join each room within %s, or all who have a code. All are drawn together.",
			numeral.Group(d.Visitors), all[0].length)
		say("One network, a /24 or a /48, may have %d tickets of a room.", ticketLimit(d.Visitors))
		busy := make(chan struct{}, auditors)
		group, ctx := errgroup.WithContext(ctx)
		for _, a := range all {
			if err := d.makeRoom(ctx, a.slug+"-"+a.from.slug, a.config); err != nil {
				return errors.Join(err, group.Wait())
			}
			a.room = d.room
			group.Go(func() error { return d.attack(ctx, a, busy) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		d.checks.ClearStatus()
		d.compare(all)
		return nil
	})
}

// attacks lists the attacks, door by door.
func (d *demo) attacks(k *desk) (all []*attack) {
	visits := 0
	for i := range doors(d.Visitors, k) {
		for _, from := range scriptNetworks(asked(d.Visitors)) {
			door := doors(d.Visitors, k)[i] // each room has a guard of its own
			a := &attack{
				door: door, from: from, number: len(all), checks: d.checks, tickets: asked(d.Visitors),
				script: map[string]bool{},
			}
			a.most = a.tickets
			if a.holds > 0 {
				a.most = a.holds
			}
			if from.isOne {
				a.most = min(a.most, ticketLimit(d.Visitors))
			}
			all, visits = append(all, a), visits+a.visits
		}
	}
	for _, a := range all {
		a.length = joining(visits)
	}
	return all
}

// attack plays one room and audits it, when fewer than so many others are being audited.
func (d *demo) attack(ctx context.Context, a *attack, busy chan struct{}) error {
	for _, chapter := range []func(context.Context) error{a.rush, a.end} {
		if err := chapter(ctx); err != nil {
			return fmt.Errorf("room %s: %w", a.room.Slug, err)
		}
	}
	select {
	case busy <- struct{}{}:
		defer func() { <-busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s := &sale{room: a.room, checks: d.checks, dir: d.dir, size: a.room.Size}
	if err := a.count(ctx, &inspector{sale: s}); err != nil {
		return err
	}
	return a.audit(ctx, &auditor{sale: s, program: d.Verifier, trust: d.thirdParties.trust()})
}

// config returns the configuration of the room without the slug.
func (a *attack) config() map[string]any {
	a.opens = time.Now().Add(lead).Truncate(time.Millisecond)
	a.starts = a.opens.Add(a.length)
	config := map[string]any{
		"title": "Rehearsed attack", "opens": a.opens, "starts": a.starts,
		"windows": []map[string]any{{"from": a.opens, "length": a.length.String()}},
		"margin":  margin.String(), "quorum": len(witnessNames),
	}
	if a.desk != nil {
		a.desk.guard(config)
	}
	return config
}

// rush sends the people and the script, and returns when the room has answered all of them. People who cannot be
// sent in time, because the machine is slow, do not come.
func (a *attack) rush(ctx context.Context) error {
	if a.desk != nil {
		if err := a.desk.serve(ctx, a.room); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	arrivals := make(chan int)
	group.Go(func() error {
		defer close(arrivals)
		return a.bringPeople(ctx, arrivals)
	})
	for range senders {
		group.Go(func() error {
			for n := range arrivals {
				if err := a.joinPerson(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for worker := range senders / 2 {
		group.Go(func() error {
			if err := visitor.Sleep(ctx, time.Until(a.opens.Add(edge))); err != nil {
				return err
			}
			for n := worker; n < a.tickets; n += senders / 2 {
				if err := a.joinScript(ctx, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.checks.expect(len(a.script) == a.most && a.refused == a.tickets-a.most,
		"the script has %d places and was refused %d, want %d places", len(a.script), a.refused, a.most)
	return nil
}

// bringPeople sends the number of each person at the time of arrival, until it is too late to join.
func (a *attack) bringPeople(ctx context.Context, arrivals chan<- int) error {
	times := make([]time.Duration, a.visits)
	for i := range times {
		times[i] = edge + time.Duration(mathrand.Int64N(int64(a.starts.Sub(a.opens)-lastJoin-edge))) //nolint:gosec // no secret
	}
	slices.Sort(times)
	for n, at := range times {
		if err := visitor.Sleep(ctx, time.Until(a.opens.Add(at))); err != nil {
			return err
		}
		if time.Until(a.starts) < lastJoin/2 {
			return nil
		}
		select {
		case arrivals <- n:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (a *attack) joinPerson(ctx context.Context, n int) error {
	ctx = from(ctx, personAddress(n, a.visits))
	if _, err := a.join(ctx, fmt.Sprintf("person %d", n)); err != nil {
		return fmt.Errorf("person %d: %w", n, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.people++
	joins, _ := a.checks.joined()
	a.checks.Status("%s tickets have joined, and %s joins of the scripts were refused", numeral.Group(joins),
		numeral.Group(a.checks.refusals()))
	return nil
}

// joinScript joins with one ticket of the script. Its tickets share its networks, and its accounts or codes.
func (a *attack) joinScript(ctx context.Context, n int) error {
	holder := n
	if a.holds > 0 {
		holder %= a.holds
	}
	ctx = from(ctx, a.from.address(a.number, n))
	ticket, err := a.join(ctx, fmt.Sprintf("script %d", holder))
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.script[ticket] = true
	case a.holds > 0 && isRefusal(err, http.StatusConflict), a.from.isOne && isRefusal(err, http.StatusTooManyRequests):
		a.refused++
		a.checks.refuse()
	default:
		return fmt.Errorf("ticket %d of the script: %w", n, err)
	}
	return nil
}

// join joins with a new ticket, and with a credential of the account if the room needs one.
func (a *attack) join(ctx context.Context, account string) (string, error) {
	var secret [fairness.SecretSize]byte
	_, _ = rand.Read(secret[:]) // never fails
	ticket := fairness.NewTicket(a.room.origin(), secret)
	var shown []credential.Credential
	if a.desk != nil {
		c, err := a.desk.vouch(account, ticket)
		if err != nil {
			return "", err
		}
		shown = append(shown, c)
	}
	j, err := a.room.visitor.Join(ctx, ticket.String(), shown...)
	if err == nil {
		a.checks.join(time.Now())
	}
	return j.Ticket, err
}

// end waits for the draw, and ends the room when all have a place.
func (a *attack) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Until(a.starts)+drawing, fmt.Errorf("no draw after %s", drawing))
	defer cancel()
	all := uint64(a.people + len(a.script)) //nolint:gosec // not negative
	for {
		room, err := a.room.manage(ctx, http.MethodGet, "", nil)
		if err != nil {
			return err
		}
		if room.Counts.Assigned == all {
			break
		}
		if err := visitor.Sleep(ctx, watchInterval); err != nil {
			return context.Cause(ctx)
		}
	}
	var err error
	a.room.Room, err = a.room.manage(ctx, http.MethodPost, "/end", nil)
	return err
}

// first is the number of first places that are looked at: as many as the script asks for, or all.
func (a *attack) first() int { return min(a.tickets, a.people+len(a.script)) }

// count counts the script's tickets among the first places, in the published transcript.
func (a *attack) count(ctx context.Context, i *inspector) error {
	t, err := i.published(ctx)
	if err != nil {
		return err
	}
	entries, err := parse(t.Entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		place, ok := e.(*fairness.Assign)
		if ok && int(place.Position) <= a.first() && a.script[place.Ticket.String()] {
			a.ahead++
		}
	}
	fair, deviation := chance(a.people+len(a.script), len(a.script), a.first())
	a.checks.expect(math.Abs(float64(a.ahead)-fair) <= unlikely*deviation+1,
		"the script has %d of the first %d places, and its share is %.1f", a.ahead, a.first(), fair)
	return nil
}

// chance returns the mean and the standard deviation of the number of first places that the script gets by chance
// alone: those of a hypergeometric distribution.
func chance(all, script, first int) (mean, deviation float64) {
	n, p := float64(first), float64(script)/float64(all)
	return n * p, math.Sqrt(n * p * (1 - p) * float64(all-first) / float64(max(all-1, 1)))
}

// audit runs the standalone verifier, and prints what it says about the door.
func (a *attack) audit(ctx context.Context, by *auditor) (err error) {
	args := append([]string{"audit", a.room.URL, "--vkey", a.room.VKey, "--no-keep"}, by.trust...)
	var code int
	if a.report, code, err = by.report(ctx, args...); err != nil {
		return err
	}
	shown := 0
	for _, m := range a.report.Methods {
		shown += int(m.Shown)
	}
	joined := a.people + len(a.script)
	sound := code == 0 && a.report.OK && a.report.Level == verifier.LevelWitnessed
	a.checks.expect(sound && int(a.report.Arrivals) == joined, //nolint:gosec // at most MaxVisitors
		"the audit exits with %d, verified: %t, level %d, %d arrivals", code, a.report.OK, a.report.Level, a.report.Arrivals)
	want := 0
	if a.desk != nil {
		want = joined
	}
	a.checks.expect(shown == want, "%d tickets showed a credential, want %d", shown, want)
	a.checks.Say("The standalone verifier has replayed %s: level %d, %s people, %s tickets of the script.",
		a.room.Slug, a.report.Level, numeral.Group(a.people), numeral.Group(len(a.script)))
	return nil
}

// compare prints what the script got from each room, and what the verifier says about the doors.
func (d *demo) compare(all []*attack) {
	p := d.Narrator.Print
	p("\nWhat the script got, which asked for %s tickets\n\n", numeral.Group(asked(d.Visitors)))
	table(p, "its places in line, from", all, func(a *attack) string { return numeral.Group(len(a.script)) })
	p("\n")
	first := fmt.Sprintf("its share of the first %s places, from", numeral.Group(all[0].first()))
	table(p, first, all, func(a *attack) string {
		return fmt.Sprintf("%.1f%%", 100*float64(a.ahead)/float64(a.first()))
	})
	p("\n  %s\n", strings.Join(wrap(meaning, textWidth), "\n  "))
	if late := latecomers(all); late > 0 {
		text := fmt.Sprintf("This machine was too busy to send %s in time: with them, the shares would be smaller.",
			numeral.Count(uint64(late), "person", "people")) //nolint:gosec // not negative
		p("\n  %s\n", strings.Join(wrap(text, textWidth), "\n  "))
	}
	p("\nWhat the verifier says about the door\n\n")
	for i := 0; i < len(all); i += columns {
		a := all[i]
		p("  $ proofline-verify audit %s\n\n", a.room.URL)
		lines := report.Door(a.report)
		if len(lines) == 0 {
			lines = []string{"(Its report has no section \"The door\": joins of this room need nothing.)"}
		}
		for _, line := range lines {
			p("    %s\n", strings.Join(wrap(line, textWidth), "\n    "))
		}
		p("\n")
	}
	if n := d.checks.failures(); n > 0 {
		p("✗ %d checks failed, see above.\n", n)
		return
	}
	p("✓ Everything was as expected.\n")
}

// latecomers returns how many people of all rooms did not come, because it was too late to join.
func latecomers(all []*attack) (n int) {
	for _, a := range all {
		n += a.visits - a.people
	}
	return n
}

// columns is the number of kinds of networks.
const columns = 3

// table prints a figure of all attacks: a line for each door, and a column for each kind of networks.
func table(p func(string, ...any), what string, all []*attack, figure func(*attack) string) {
	const form = "  %-42s%9s%9s%16s\n"
	p(form, what, all[0].from.name, all[1].from.name, all[2].from.name)
	for n := 0; n < len(all); n += columns {
		p(form, "  "+all[n].needs, figure(all[n]), figure(all[n+1]), figure(all[n+2]))
	}
}

// meaning says what the table shows, and what it does not.
const meaning = "A draw gives the script its share of the line. A limit of tickets per network makes that small for a script " +
	"with one /24 or one /48, and does nothing against one with addresses in a thousand networks, which anybody can rent. " +
	"What holds that script is the door: behind one that needs an account or a membership its share is that of its accounts, " +
	"and behind one that needs a code that of the codes which people sell, wherever its joins come from. Work changes no " +
	"share. Here it is a moment, and the console proposes 4,096 times as much: seconds on an old phone, and two minutes of " +
	"one core for a thousand tickets. The limit is chosen for this table. By default a network may have 10,000 tickets of a " +
	"room, because campuses and carriers are one network, too, and then even one /24 gets all that this script asks for. " +
	"Where there are fewer first places than the head of the table says, as with codes, all places count."

// textWidth is the length of the verifier's lines.
const textWidth = 72

// wrap breaks a text at spaces into lines of at most that length, unless a word is longer.
func wrap(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}
