package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// auditor runs the standalone verifier on a sale that is over.
type auditor struct {
	*sale
	program string   // path of proofline-verify
	trust   []string // flags that name trusted beacons and witnesses
}

// audit runs the standalone verifier on the published transcript: once to show its
// report, once to check its numbers.
func (a *auditor) audit(ctx context.Context) error {
	args := []string{"audit", a.room.URL, "--vkey", a.room.VKey, "--kept", a.kept, "--no-keep"}
	args = append(args, a.trust...)
	a.checks.Say("Now an auditor who does not trust the server runs the standalone verifier:")
	a.checks.Print("\n  $ proofline-verify audit %s --vkey ... --beacon ... --witness ... --witness ...\n\n",
		a.room.URL)
	code, err := a.verify(ctx, a.checks.out, args...)
	if err != nil {
		return err
	}
	a.checks.Print("\n")
	a.checks.expect(code == 0, "the audit exits with %d", code)
	report, code, err := a.report(ctx, args...)
	if err != nil {
		return err
	}
	n, missing := uint64(len(a.crowd.people)), uint64(len(a.crowd.with(absent))) //nolint:gosec // not negative
	a.checks.expect(code == 0 && report.OK && report.Level == verifier.LevelWitnessed,
		"the audit exits with %d, verified: %t, level %d", code, report.OK, report.Level)
	a.checks.expect(report.Entries == a.size && report.Arrivals == n && report.Assignments == n &&
		report.Admissions == n-missing,
		"the audit counts %d entries, %d arrivals, %d places, %d admissions",
		report.Entries, report.Arrivals, report.Assignments, report.Admissions)
	a.checks.Say("This auditor chose to trust the local beacon and witnesses: level 3 is worth as much as they are.")
	stranger, code, err := a.report(ctx, "audit", a.room.URL, "--vkey", a.room.VKey, "--no-keep")
	if err != nil {
		return err
	}
	a.checks.expect(code == 0 && stranger.OK && stranger.Level == verifier.LevelConsistent,
		"without trusted witnesses the audit exits with %d, level %d", code, stranger.Level)
	a.checks.Say("An auditor who knows neither beacon nor witnesses gets level %d.", stranger.Level)
	return nil
}

// forge changes one byte in a copy of the transcript, and checks that the verifier
// finds it.
func (a *auditor) forge(ctx context.Context) error {
	dir := filepath.Join(a.dir, a.room.Slug+".transcript")
	if code, err := a.verify(ctx, io.Discard, "fetch", a.room.URL, dir); err != nil || code != 0 {
		return errors.Join(err, fmt.Errorf("fetching the transcript exits with %d", code))
	}
	victim := a.crowd.people[len(a.crowd.people)/2]
	if err := changeByte(dir, victim.joined.Index, a.size, victim.ticket); err != nil {
		return fmt.Errorf("change a byte of the copy: %w", err)
	}
	a.checks.Say("A forger changes one byte in a copy of it: a digit of the ticket in entry %d.", victim.joined.Index)
	report, code, err := a.report(ctx, "audit", dir, "--vkey", a.room.VKey, "--no-keep")
	if err != nil {
		return err
	}
	a.checks.Print("\n  $ proofline-verify audit %s\n\n", dir)
	named := false
	for _, c := range report.Checks {
		if c.Status == verifier.Fail {
			a.checks.Print("  ✗ %s\n    %s\n", c.Title, c.Detail)
			named = named ||
				bytes.Contains([]byte(c.Detail), fmt.Appendf(nil, "#%d ", victim.joined.Index)) ||
				bytes.Contains([]byte(c.Detail), fmt.Appendf(nil, "entry %d", victim.joined.Index))
		}
	}
	a.checks.Print("\n")
	a.checks.expect(code == 1 && !report.OK, "the audit of the forged copy exits with %d, verified: %t", code,
		report.OK)
	a.checks.expect(named, "the audit of the forged copy does not name entry %d", victim.joined.Index)
	a.checks.Say("The verifier exits with %d and names the entry.", code)
	return nil
}

// changeByte changes the last digit of an entry's ticket in the entry's bundle.
func changeByte(dir string, index, size uint64, ticket string) error {
	bundle := audit.Tile{Level: -1, Index: index / audit.TileWidth, Width: audit.TileWidth}
	if !bundle.In(size) {
		bundle.Width = int(size % audit.TileWidth)
	}
	name := filepath.Join(dir, filepath.FromSlash(bundle.Path()))
	content, err := os.ReadFile(name) //nolint:gosec // in the copy just made
	if err != nil {
		return err
	}
	at := bytes.Index(content, []byte(ticket))
	if at < 0 {
		return fmt.Errorf("ticket %s is not in %s", ticket, name)
	}
	digit := &content[at+len(ticket)-1]
	if *digit == '0' {
		*digit = '1'
	} else {
		*digit = '0'
	}
	return os.WriteFile(name, content, 0o644) //nolint:gosec // published
}

// report runs an audit and returns its JSON report.
func (a *auditor) report(ctx context.Context, args ...string) (*verifier.Report, int, error) {
	var out bytes.Buffer
	code, err := a.verify(ctx, &out, append(args, "--json")...)
	if err != nil {
		return nil, code, err
	}
	r := &verifier.Report{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		return nil, code, fmt.Errorf("read the verifier's report: %w", err)
	}
	return r, code, nil
}

// verify runs the verifier and returns its exit code.
func (a *auditor) verify(ctx context.Context, out io.Writer, args ...string) (int, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, a.program, args...) //nolint:gosec // our own binary
	cmd.Stdout, cmd.Stderr = out, &stderr
	err := cmd.Run()
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) && exited.Exited() && stderr.Len() == 0 {
		return exited.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("run %s: %w: %s", a.program, err, stderr.Bytes())
	}
	return 0, nil
}
