package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/listfile"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room/revocation"
)

// Limits of a list.
const (
	maxListFile = 128 << 20 // bytes
	maxListed   = 1_000_000 // lines
)

// listFlags name many tickets.
type listFlags struct {
	list, method, nullifiers string
	all, skipUnknown, check  bool
}

func (f *listFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.list, "list", "",
		"`FILE` of tickets, one a line or a CSV file with a column called ticket; - for standard input")
	flags.StringVar(&f.method, "method", "", "tickets that have shown this `METHOD`, with --nullifiers or --all")
	flags.StringVar(&f.nullifiers, "nullifiers", "", "`FILE` of nullifiers of the method, one a line, in hex")
	flags.BoolVar(&f.all, "all", false, "all tickets that have shown the method")
	flags.BoolVar(&f.skipUnknown, "skip-unknown", false, "leave out tickets that have not joined this room")
	flags.BoolVar(&f.check, "check", false, "only count the tickets, and change nothing")
	c.MarkFlagsMutuallyExclusive("list", "method")
	c.MarkFlagsMutuallyExclusive("nullifiers", "all")
}

// isGiven reports whether the flags name tickets.
func (f *listFlags) isGiven() bool {
	return f.list != "" || f.method != "" || f.nullifiers != "" || f.all
}

// wantList explains which arguments the commands take.
func wantList(command string) error {
	return cli.Usage(errors.New("give either a ticket, or --list FILE, or --method METHOD with --nullifiers FILE "+
		"or --all"),
		"run proofline room "+command+" --help")
}

// checkArgs reports whether the command names one ticket, or else many.
func (f *listFlags) checkArgs(c *cobra.Command, args []string) (isOne bool, err error) {
	isOne = len(args) == 2
	if isOne == f.isGiven() || !isOne && (f.list == "") != (f.method != "" && (f.nullifiers != "" || f.all)) {
		return isOne, wantList(c.Name())
	}
	return isOne, nil
}

// parts reads the lists, in parts of as many lines as a request may have. It is not called for all tickets of a method.
func (f *listFlags) parts(m *remote.Manager) (parts []wire.NamedTickets, err error) {
	file, name := f.list, "ticket"
	parse := func(text string) (string, error) { _, err := fairness.ParseTicket(text); return text, err }
	if f.method != "" {
		file, name = f.nullifiers, "nullifier"
		parse = func(text string) (string, error) { _, err := revocation.ParseNullifier(text); return text, err }
	}
	text, err := m.ReadFile(file, maxListFile, "give a file with one "+name+" a line, or - for standard input")
	if err != nil {
		return nil, err
	}
	lines, err := listfile.Read(string(text), name, maxListed, parse)
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("%s: %s", file, strings.ReplaceAll(err.Error(), "; line", "\n  line")),
			"nothing was done")
	}
	for part := range slices.Chunk(lines, revocation.Most) {
		if f.method != "" {
			parts = append(parts, wire.NamedTickets{Method: f.method, Nullifiers: part})
		} else {
			parts = append(parts, wire.NamedTickets{Tickets: part})
		}
	}
	return parts, nil
}

// bulk is one run of a command on many tickets. in makes the body of a request, and next reads the answer to it: the
// request after one for all tickets of a method, or nil.
type bulk struct {
	*remote.Manager
	path string
	in   func(wire.NamedTickets) any
	read func(raw []byte) (next *uint32, err error)
}

// send sends the parts of a list one after the other, and shows how far it is.
func (b *bulk) send(c *cobra.Command, f *listFlags, parts []wire.NamedTickets, doing string) error {
	if f.all {
		parts = []wire.NamedTickets{{Method: f.method, All: true}}
	}
	return b.sendParts(c, parts, doing)
}

func (b *bulk) sendParts(c *cobra.Command, parts []wire.NamedTickets, doing string) error {
	live := b.Live()
	defer live.Clear()
	sent := 0
	for i := 0; i < len(parts); i++ {
		part := parts[i]
		part.Check = doing == checking
		body, err := json.Marshal(b.in(part))
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if _, err := b.Ask(c, http.MethodPost, b.path, body, &raw); err != nil {
			if sent > 0 && doing != checking {
				b.Note(fmt.Sprintf("the first %d are done; the command can be run again with the same list", sent))
			}
			return err
		}
		next, err := b.read(raw)
		if err != nil {
			return err
		}
		if sent += len(part.Tickets) + len(part.Nullifiers); next != nil {
			parts = append(parts, wire.NamedTickets{Method: part.Method, All: true, From: *next})
			sent += revocation.Most
		}
		live.Show("%s: %d", doing, sent)
	}
	return nil
}

const checking = "checking"

// add adds a tally to that of the parts before.
func add(sum *wire.TicketTally, t wire.TicketTally) {
	sum.Waiting += t.Waiting
	sum.Called += t.Called
	sum.Drawing += t.Drawing
	sum.Admitted += t.Admitted
	sum.Gone += t.Gone
	sum.Revoked += t.Revoked
	sum.Again += t.Again
	sum.Passed += t.Passed
	sum.Unknown += t.Unknown
	sum.Repeated += t.Repeated
	sum.Next = nil
}

// printTally prints where the tickets stand.
func printTally(m *remote.Manager, t wire.TicketTally) error {
	rows := [][]string{}
	for _, row := range []struct {
		name string
		n    int
	}{
		{"waiting", t.Waiting}, {"called", t.Called}, {"in a draw that is under way", t.Drawing},
		{"admitted before", t.Admitted}, {"gone", t.Gone}, {"revoked before", t.Revoked},
		{"revoked for the second time", t.Again}, {"unknown", t.Unknown}, {"repeated", t.Repeated},
	} {
		if row.n > 0 {
			rows = append(rows, []string{row.name, fmt.Sprint(row.n)})
		}
	}
	return m.PrintTable(rows...)
}

// revokeMany revokes the tickets that the flags name.
func revokeMany(m *remote.Manager, c *cobra.Command, f *listFlags, slug, reason string) error {
	class, err := classOf(reason)
	if err != nil {
		return err
	}
	var parts []wire.NamedTickets
	if !f.all {
		if parts, err = f.parts(m); err != nil {
			return err
		}
	}
	var sum wire.Revocations
	b := &bulk{m, roomPath(slug, "/revocations"), func(t wire.NamedTickets) any {
		return wire.RevocationsInput{NamedTickets: t, Reason: class, SkipUnknown: f.skipUnknown}
	}, func(raw []byte) (*uint32, error) {
		var one wire.Revocations
		if err := remote.Decode(raw, &one); err != nil {
			return nil, err
		}
		add(&sum.Tally, one.Tally)
		if sum.Done += one.Done; sum.First == nil {
			sum.First = one.First
		}
		return one.Tally.Next, nil
	}}
	if f.check || len(parts) > 1 { // a list in one part is checked and revoked with one request
		if err := b.send(c, f, parts, checking); err != nil {
			return err
		}
	}
	if !f.check {
		sum = wire.Revocations{}
		if err := b.send(c, f, parts, "revoking"); err != nil {
			return err
		}
	}
	return m.Print(sum, func() error {
		err := printTally(m, sum.Tally)
		if err == nil && !f.check {
			err = m.Printf("%d places are revoked\n", sum.Done)
		}
		if err == nil && sum.First != nil {
			err = m.Printf("to undo this, run proofline room restore with the same list and --since %d\n", *sum.First)
		}
		return err
	})
}

// Waits between two rounds of a restoration.
const (
	restoreDelay    = 5 * time.Second
	maxRestoreDelay = time.Minute
)

// pause waits, or fails with the error of the context if that ends before.
func pause(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// restoreMany gives the tickets that the flags name their places back.
func restoreMany(m *remote.Manager, c *cobra.Command, f *listFlags, slug string, since uint64, noWait bool) error {
	var parts []wire.NamedTickets
	var err error
	if !f.all {
		if parts, err = f.parts(m); err != nil {
			return err
		}
	}
	var sum wire.Restorations
	var part wire.NamedTickets    // of the latest request
	var later []wire.NamedTickets // those with tickets that cannot be called at once yet
	b := &bulk{m, roomPath(slug, "/restorations"), func(t wire.NamedTickets) any {
		part = t
		return wire.RestorationsInput{NamedTickets: t, Since: since, SkipUnknown: f.skipUnknown}
	}, func(raw []byte) (*uint32, error) {
		var one wire.Restorations
		if err := remote.Decode(raw, &one); err != nil {
			return nil, err
		}
		add(&sum.Tally, one.Tally)
		sum.Done, sum.Called, sum.Later = sum.Done+one.Done, sum.Called+one.Called, sum.Later+one.Later
		if one.Later > 0 {
			later = append(later, part)
		}
		return one.Tally.Next, nil
	}}
	doing := "restoring"
	if f.check {
		doing = checking
	}
	if err := b.send(c, f, parts, doing); err != nil {
		return err
	}
	first := sum.Tally // the rounds after it count the same tickets
	for wait := restoreDelay; sum.Later > 0 && !f.check && !noWait; wait = min(2*wait, maxRestoreDelay) {
		m.Note(fmt.Sprintf("%d places are given back; %d more would be called at once, and wait for outflow, seats or "+
			"the end of a pause: the next attempt is in %v", sum.Done, sum.Later, wait))
		if err := pause(c.Context(), wait); err != nil {
			return err
		}
		again := later
		if f.all {
			again = later[:1] // the requests after it follow from its answer
		}
		sum.Later, later = 0, nil
		if err := b.sendParts(c, again, doing); err != nil {
			return err
		}
	}
	sum.Tally = first
	return m.Print(sum, func() error {
		err := printTally(m, sum.Tally)
		if err == nil && !f.check {
			err = m.Printf("%d places are given back; of these visitors %d are called at once\n", sum.Done, sum.Called)
		}
		if err == nil && sum.Later > 0 {
			err = m.Printf("%d more would be called at once, and have to wait for outflow, seats or the end of a pause: "+
				"run it again, without --no-wait\n", sum.Later)
		}
		return err
	})
}
