package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/stats"
)

type statsFlags struct {
	vkey    string
	trust   trustFlags
	json    bool
	tickets string
	group   string
}

func statsCommand(t *terminal) *cobra.Command {
	var f statsFlags
	c := &cobra.Command{
		Use:   "stats URL|DIR",
		Short: "Look for favouritism that breaks no rule",
		Long: `Look for favouritism that breaks no rule: do places in line depend on the time
of arrival, do neighbours stay together, are the people on a list further to
the front? The transcript is audited in the same run; no checkpoint is kept or
compared.

A list is a file with one ticket per line, or the secret of a ticket in this room
(43 characters as in a resume link, or 64 hex digits). Empty lines and lines
that begin with # are ignored.

Exit code 0: nothing unusual, or too few arrivals to tell; 1: unusual, or the
audit failed; 2: wrong usage; 3: the transcript could not be read.`,
		Example: `  proofline-verify stats https://example.com/r/sale
  proofline-verify stats ./sale --tickets shoppers.txt --group insiders.txt --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	c.Flags().StringVar(&f.tickets, "tickets", "", "`FILE` with your own tickets, which should be spread over the line")
	c.Flags().StringVar(&f.group, "group", "", "`FILE` with tickets of people who may have been favoured")
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in the transcript)")
	f.trust.define(c)
	c.Flags().BoolVar(&f.json, "json", false, "print the audit's report and the statistics as JSON")
	return c
}

// statsOutput is the output of --json.
type statsOutput struct {
	Audit      *verifier.Report `json:"audit"`
	Statistics *stats.Result    `json:"statistics"` // null if the audit failed
}

func (f *statsFlags) run(ctx context.Context, t *terminal, arg string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	trust, err := f.trust.parse()
	if err != nil {
		return err
	}
	src, err := open(arg)
	if err != nil {
		return err
	}
	pinned, err := pin(ctx, src)
	if err != nil {
		return unreadable(err)
	}
	lists, err := f.lists(pinned.origin())
	if err != nil {
		return err
	}
	began, collecting := time.Now(), collect(pinned, stats.New(lists))
	trust.VKey = vkey
	out := statsOutput{}
	out.Audit, err = auditWhole(ctx, t, pinned, collecting, trust)
	if err != nil {
		return unreadable(err)
	}
	if vkey == "" && !named(arg, out.Audit.Origin) {
		out.Audit.NotProven = append(out.Audit.NotProven,
			fmt.Sprintf("That this is the room at %s: it calls itself %s.", arg, printable(out.Audit.Origin)))
	}
	if out.Audit.OK {
		if out.Statistics, err = collecting.result(); err != nil {
			return unreadable(err) // unexpected: the audit has accepted these entries
		}
	}
	out.Audit.Seconds = time.Since(began).Seconds()
	if err := f.print(t, out); err != nil {
		return unreadable(err)
	}
	if !out.Audit.OK || out.Statistics.Verdict == stats.Unusual {
		return &exit{code: exitFailed}
	}
	return nil
}

func (f *statsFlags) print(t *terminal, out statsOutput) error {
	if !f.json {
		return t.printStats(out)
	}
	e := json.NewEncoder(t.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}

// lists reads the files of the flags and converts secrets to tickets of the room.
func (f *statsFlags) lists(origin string) (l stats.Lists, err error) {
	if l.Own, err = readTickets("--tickets", f.tickets, origin); err != nil {
		return l, err
	}
	l.Group, err = readTickets("--group", f.group, origin)
	return l, err
}

func readTickets(flag, name, origin string) ([]fairness.Ticket, error) {
	if name == "" {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, usage(err, flag+" takes the name of a file with one ticket or secret per line")
	}
	list, err := parseTickets(content, origin)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %s: %w", flag, name, err),
			"a ticket looks like 5f0c1d2e-3a4b-8c5d-9e6f-708192a3b4c5; a secret has 43 characters, or 64 hex digits")
	}
	return list, nil
}

var errTicketList = errors.New("neither a ticket nor a secret")

// parseTickets reads a list. Errors name only the line number, because the line may be a secret.
func parseTickets(content []byte, origin string) (list []fairness.Ticket, err error) {
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		t, err := fairness.ParseTicket(string(line))
		if secret, ok := parseSecret(string(line)); err != nil && ok {
			t, err = fairness.NewTicket(origin, secret), nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, errTicketList)
		}
		list = append(list, t)
	}
	if len(list) == 0 {
		return nil, errors.New("has no tickets")
	}
	return list, nil
}

// parseSecret reads a secret, in the form of a resume link or in hex.
func parseSecret(text string) (secret [fairness.SecretSize]byte, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if len(text) == hex.EncodedLen(len(secret)) {
		b, err = hex.DecodeString(text)
	}
	if err != nil || len(b) != len(secret) {
		return secret, false
	}
	return [fairness.SecretSize]byte(b), true
}
