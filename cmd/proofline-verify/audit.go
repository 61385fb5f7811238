package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/findings"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
	"github.com/proofline/proofline/verifier/rooms"
	"github.com/proofline/proofline/verifier/source"
	"github.com/proofline/proofline/verifier/stats"
)

type auditFlags struct {
	vkey   string
	trust  trustFlags
	about  aboutFlags
	issued issuedFlags
	json   bool
	html   string
	kept   string
	state  string
	noKeep bool
}

func auditCommand(t *terminal) *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit URL|DIR|ZIP",
		Short: "Check a whole transcript and print a report",
		Long: `Check a whole transcript: read it from a room's URL, from a directory or from an
archive made by "proofline-verify dossier", recompute everything, and print
numbered checks.

The command keeps the last verified checkpoint of each room. The next audit
checks that no earlier entry was rewritten.`,
		Example: `  proofline-verify audit https://example.com/r/sale
  proofline-verify audit ./sale --vkey @sale.vkey --json
  proofline-verify audit https://example.com/r/sale --html report.html
  proofline-verify audit https://example.com/r/sale --issued https://club.example.org/issued`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	f.define(c)
	f.issued.define(c)
	c.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	c.Flags().StringVar(&f.html, "html", "",
		"also write the report to this `FILE`, as an HTML page to read, print and share")
	return c
}

// define defines the flags that all auditing commands share.
func (f *auditFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in the transcript)")
	f.trust.define(c)
	f.about.define(c)
	c.Flags().StringVar(&f.kept, "kept", "", "compare with the checkpoint in this `FILE` instead of the kept one")
	c.Flags().StringVar(&f.state, "state", "",
		"keep checkpoints in this `DIR` (default: $XDG_STATE_HOME/proofline-verify)")
	c.Flags().BoolVar(&f.noKeep, "no-keep", false, "do not read or keep checkpoints")
	c.MarkFlagsMutuallyExclusive("state", "no-keep")
}

func (f *auditFlags) run(ctx context.Context, t *terminal, arg string) error {
	src, trust, keeper, err := f.prepare(ctx, t, arg)
	if err != nil {
		return err
	}
	done, err := f.audited(ctx, t, arg, src, trust, f.html != "")
	if err != nil {
		return unreadable(err)
	}
	if done.Issued, err = f.issued.compare(ctx, done); err != nil {
		return err
	}
	if err := f.print(t, done); err != nil {
		return unreadable(err)
	}
	if err := f.writePage(ctx, src, done); err != nil {
		return &exit{exitUnreadable, err, "give another file with --html"}
	}
	if !done.Report.OK {
		return &exit{exitFailed, rewritten(done.Report),
			fmt.Sprintf("prove it to others: proofline-verify compare %s %s; "+
				"or remove %[1]s, if you recreated this room yourself", quoted(keeper.from()), quoted(arg))}
	}
	if !unconfirmed(arg, done) { // otherwise it would be compared with the real room of that name
		keeper.save(src.checkpoint)
	}
	return contradiction(done.Issued)
}

// rewritten returns an error if the signed history contradicts that of an earlier audit. Entries that are
// not those of their checkpoint, as in a damaged copy, contradict no signature.
func rewritten(r *verifier.Report) error {
	fails := func(id string) bool {
		return slices.ContainsFunc(r.Checks, func(c verifier.Check) bool {
			return c.ID == id && c.Status == verifier.Fail
		})
	}
	if fails("append-only") && !fails("history") {
		return errors.New("the history is not the one of the earlier audit")
	}
	return nil
}

// prepare opens a transcript and reads the flags and the kept checkpoint.
func (f *auditFlags) prepare(ctx context.Context, t *terminal, arg string) (*pinned, verifier.Trust, *keeper, error) {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return nil, verifier.Trust{}, nil, err
	}
	trust, err := f.trust.parse()
	if err == nil {
		err = f.about.check()
	}
	if err != nil {
		return nil, trust, nil, err
	}
	src, err := open(arg)
	if err != nil {
		return nil, trust, nil, err
	}
	pinned, err := pin(ctx, src)
	if err != nil {
		return nil, trust, nil, unreadable(err)
	}
	keeper := newKeeper(f, t, pinned.origin())
	trust.VKey = vkey
	trust.Kept, err = keeper.load()
	return pinned, trust, keeper, err
}

// audited audits a transcript. If withStats, it also collects statistics for the page.
func (f *auditFlags) audited(ctx context.Context, t *terminal, arg string, src *pinned, trust verifier.Trust,
	withStats bool) (*report.Audit, error) {
	done := &report.Audit{
		Trust: trust, Checkpoint: src.checkpoint, Source: arg, Command: command(arg, trust),
		Program: "proofline-verify " + version(), Time: time.Now(),
	}
	recorder, from := report.Record(src), verifier.Source(src)
	collecting := collect(recorder, stats.New(stats.Lists{}))
	if withStats {
		from = collecting
	}
	var finder findings.Finder
	isEnded := false
	trust.OnEntry = func(s *fairness.State, e fairness.Entry) {
		finder.Add(s, e)
		isEnded = s.Ended()
		if room, ok := e.(*fairness.Room); ok {
			done.Entry = sha256.Sum256(fairness.AppendEntry(nil, room))
		}
	}
	r, err := auditWhole(ctx, t, src, from, trust)
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(done.Time).Seconds()
	done.Report, done.Story, done.Findings = r, recorder.Story(), finder.Findings()
	if withStats && r.OK {
		if done.Statistics, err = collecting.result(); err != nil {
			return nil, err // unexpected: the audit has accepted these entries
		}
	}
	if unconfirmed(arg, done) {
		r.NotProven = append(r.NotProven, fmt.Sprintf("That this is the room at %s: it calls itself %s.", arg,
			printable(r.Origin)))
	}
	audited := rooms.Audited{Source: src, Origin: r.Origin, Checkpoint: done.Checkpoint, IsEnded: isEnded}
	f.lookUp(ctx, t, arg, audited, done)
	return done, nil
}

// auditWhole audits from, which reads src, and shows progress. It also checks the files of a copy that an audit does
// not read.
func auditWhole(ctx context.Context, t *terminal, src *pinned, from verifier.Source,
	trust verifier.Trust) (*verifier.Report, error) {
	bar, copied := t.bar("entries"), source.NewCopyCheck(src.Source)
	trust.Progress = bar.show
	if copied != nil {
		trust.OnBundle = copied.OnBundle
	}
	r, err := verifier.Audit(ctx, from, trust)
	bar.clear()
	if err == nil && r.OK && copied != nil { // a failed audit needs no further check
		err = finishCopy(ctx, copied, r)
	}
	return r, err
}

// unconfirmed reports whether neither a key nor the address confirms the room's origin.
func unconfirmed(arg string, a *report.Audit) bool {
	return a.Trust.VKey == "" && !named(arg, a.Report.Origin)
}

// command returns a command line that repeats the audit.
func command(arg string, trust verifier.Trust) string {
	words := []string{"proofline-verify", "audit", arg}
	if trust.VKey != "" {
		words = append(words, "--vkey", trust.VKey)
	}
	for _, hash := range trust.Beacons {
		words = append(words, "--beacon", hex.EncodeToString(hash[:]))
	}
	for _, key := range trust.Witnesses {
		words = append(words, "--witness", key)
	}
	for i, word := range words {
		words[i] = quoted(word)
	}
	return strings.Join(words, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// quoted quotes a word for a shell.
func quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// writePage writes the report as a page, if requested.
func (f *auditFlags) writePage(ctx context.Context, src *pinned, a *report.Audit) error {
	if f.html == "" {
		return nil
	}
	f.about.apply(ctx, src.Source, a)
	var page bytes.Buffer
	if err := report.Write(&page, a); err != nil {
		return err
	}
	return source.WriteFile(f.html, page.Bytes())
}

func (f *auditFlags) print(t *terminal, a *report.Audit) error {
	if !f.json {
		return t.printReport(a.Report, a.Findings, a.Issued...)
	}
	return writeJSON(t.out, jsonOf(a))
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// open opens a source. Only an argument that cannot be an address is wrong usage.
func open(arg string) (verifier.Source, error) {
	src, err := source.Open(arg)
	if errors.Is(err, source.ErrURL) {
		return nil, usage(err, "give the address of the room, such as https://example.com/r/sale")
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, source.ErrNoTranscript) {
		return nil, &exit{exitUnreadable, err,
			"give the address of the room, such as https://example.com/r/sale, or a directory written by fetch"}
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return src, nil
}

func unreadable(err error) *exit {
	hint := "check the address and the connection, and try again; this proves and disproves nothing"
	file := (*fs.PathError)(nil)
	switch {
	case errors.Is(err, context.Canceled):
		hint = "interrupted; this proves and disproves nothing"
	case errors.Is(err, source.ErrArchive):
		hint = "get the file again, unchanged; this proves and disproves nothing"
	case errors.As(err, &file) && errors.Is(err, os.ErrNotExist):
		hint = "the copy is not complete: fetch the rest; this proves and disproves nothing"
	case errors.Is(err, os.ErrNotExist):
		hint = "give the address of the room itself, below which it serves the file checkpoint"
	}
	return &exit{exitUnreadable, err, hint}
}

// readVKey returns the key of a flag, which is the key itself or @FILE.
func readVKey(flag string) (string, error) {
	text, err := readText("--vkey", flag)
	if err != nil || flag == "" {
		return "", err
	}
	if _, err := audit.ParseKey(text); err != nil {
		return "", usage(fmt.Errorf("--vkey: %q is not a verifier key", text),
			"a key looks like NAME+HASH+BASE64; the room's operator publishes it")
	}
	return text, nil
}

// readText returns a flag's text, or the content of the file it names.
func readText(flag, text string) (string, error) {
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := os.ReadFile(name) //nolint:gosec // named by the user
		if err != nil {
			return "", usage(err, flag+" takes a key, or @ and the name of a file with a key")
		}
		text = string(b)
	}
	return strings.TrimSpace(text), nil
}

// named reports whether arg can be the room with that origin: a URL with the same host and path, or
// a directory, which may contain any room.
func named(arg, origin string) bool {
	name := addressName(arg)
	return name == "" || name == origin
}

// addressName returns the origin that a room, or a log of rooms, at a URL should have; "" for a directory.
func addressName(arg string) string {
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Host + strings.TrimRight(strings.TrimSuffix(u.Path, "/checkpoint"), "/")
}

// finishCopy adds a check to the report of an audit that passed: whether the files of a copy that
// the audit does not read match the room's, too.
func finishCopy(ctx context.Context, copied *source.CopyCheck, r *verifier.Report) error {
	fit, unchecked, err := copied.Finish(ctx)
	c := verifier.Check{ID: "copy", Title: "Every file of the copy is as the room published it",
		Status: verifier.Pass}
	switch {
	case err != nil && !errors.Is(err, source.ErrMismatch):
		return err
	case err != nil:
		c.Status, c.Detail = verifier.Fail, err.Error()+": fetch it again, which replaces wrong files"
		r.OK, r.Level = false, verifier.LevelNone
	default:
		c.Detail = strings.Join(append([]string{numeral.Count(fit, "file", "files")}, unchecked...), "; ")
	}
	r.Checks = append(r.Checks, c)
	return nil
}

// pinned is a source whose checkpoint is read only once, so that it is certain which one was
// audited.
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

// origin returns the log's origin; "" if the checkpoint is malformed.
func (p *pinned) origin() string {
	head, err := verifier.Unverified(p.checkpoint)
	if err != nil {
		return ""
	}
	return head.Origin
}
