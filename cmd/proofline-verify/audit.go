package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

type auditFlags struct {
	vkey   string
	others othersFlags
	json   bool
	kept   string
	state  string
	noKeep bool
}

func auditCommand(t *terminal) *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit URL|DIR",
		Short: "Check a whole transcript and print a report",
		Long: `Check a whole transcript: read it from the URL of a room or from a directory,
derive everything again, and print numbered checks.

The last verified checkpoint of each room is kept, and the next audit checks
that nothing before it was rewritten.`,
		Example: `  proofline-verify audit https://example.com/r/sale
  proofline-verify audit ./sale --vkey @sale.vkey --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "", "key of the log: the key itself, or @FILE; default is the one the transcript names")
	f.others.define(c)
	c.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	c.Flags().StringVar(&f.kept, "kept", "", "compare with the checkpoint in this file, not with the one kept")
	c.Flags().StringVar(&f.state, "state", "", "keep checkpoints in this directory (default $XDG_STATE_HOME/proofline-verify)")
	c.Flags().BoolVar(&f.noKeep, "no-keep", false, "neither use nor keep checkpoints of other audits")
	c.MarkFlagsMutuallyExclusive("state", "no-keep")
	return c
}

func (f *auditFlags) run(ctx context.Context, t *terminal, arg string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	trust, err := f.others.trust()
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
	keeper := newKeeper(f, t, pinned.origin())
	kept, err := keeper.load()
	if err != nil {
		return err
	}
	began, bar := time.Now(), t.bar("entries")
	trust.VKey, trust.Kept, trust.Progress = vkey, kept, bar.show
	report, err := verifier.Audit(ctx, pinned, trust)
	bar.clear()
	if err != nil {
		return unreadable(err)
	}
	report.Seconds = time.Since(began).Seconds()
	stranger := vkey == "" && !named(arg, report.Origin)
	if stranger {
		report.NotProven = append(report.NotProven, fmt.Sprintf("That this is the room at %s: it calls itself %s.", arg, printable(report.Origin)))
	}
	if err := f.print(t, report); err != nil {
		return unreadable(err)
	}
	if !report.OK {
		return &exit{code: exitFailed}
	}
	if !stranger { // it would be held against the room whose name it has taken
		keeper.save(pinned.checkpoint)
	}
	return nil
}

func (f *auditFlags) print(t *terminal, r *verifier.Report) error {
	if !f.json {
		return t.printReport(r)
	}
	e := json.NewEncoder(t.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// open opens a source; only a text that can be none is wrong usage.
func open(arg string) (verifier.Source, error) {
	src, err := source.Open(arg)
	if errors.Is(err, source.ErrURL) {
		return nil, usage(err, "give the address of the room, such as https://example.com/r/sale")
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return src, nil
}

func unreadable(err error) *exit {
	hint := "check the address and the connection, and try again; nothing is proven or disproven"
	switch {
	case errors.Is(err, context.Canceled):
		hint = "interrupted; nothing is proven or disproven"
	case errors.Is(err, os.ErrNotExist):
		hint = "give the address of the room itself: it has a file named checkpoint below it"
	}
	return &exit{exitUnreadable, err, hint}
}

// readVKey returns the key a flag gives, itself or @FILE.
func readVKey(flag string) (string, error) {
	text, err := readText("--vkey", flag)
	if err != nil || flag == "" {
		return "", err
	}
	if _, err := note.NewVerifier(text); err != nil {
		return "", usage(fmt.Errorf("--vkey: %q is no verifier key", text), "a key looks like NAME+HASH+BASE64; the room's operator publishes it")
	}
	return text, nil
}

// readText returns a flag's text, or that of the file it names.
func readText(flag, text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := os.ReadFile(name) //nolint:gosec // the user names it
		if err != nil {
			return "", usage(err, flag+" takes a key, or @ and the name of a file that holds one")
		}
		text = string(b)
	}
	return strings.TrimSpace(text), nil
}

// named tells whether a URL is that of the room of an origin, its host and
// path. A directory may hold any room.
func named(arg, origin string) bool {
	u, err := url.Parse(arg)
	return err != nil || u.Host == "" || u.Host+strings.TrimRight(strings.TrimSuffix(u.Path, "/checkpoint"), "/") == origin
}

// pinned is a source whose checkpoint is read once, so that it is certain
// which one was audited.
type pinned struct {
	verifier.Source
	checkpoint []byte
}

func pin(ctx context.Context, src verifier.Source) (*pinned, error) {
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	return &pinned{src, signed}, nil
}

// Checkpoint implements [verifier.Source].
func (p *pinned) Checkpoint(context.Context) ([]byte, error) { return p.checkpoint, nil }

// origin returns what the log calls itself, empty for a malformed checkpoint.
func (p *pinned) origin() string {
	head, err := verifier.Unverified(p.checkpoint)
	if err != nil {
		return ""
	}
	return head.Origin
}
