// Package doctor implements "proofline doctor".
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/load"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

// Limits of the load test.
const (
	maxLoad     = time.Minute
	connections = 64
	crowd       = 1_000_000 // more than any server takes in maxLoad
)

// flags are the flags of the command.
type flags struct {
	manager  *remote.Manager
	length   time.Duration
	sendTest bool
}

// Command returns "proofline doctor".
func Command(t *cli.Terminal) *cobra.Command {
	f := flags{manager: remote.New(t, remote.MissingOrganization)}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check what has to be right before a sale",
		Long: `Check a running server before a sale: the database and its settings, clocks, public
randomness, witnesses, disk, address and certificate, alerts, the rooms that open within a
day, and the issuers that their visitors need. Nothing is changed. With --load, a rehearsal takes as many joins as it
can for that time, so do that before the sale and not during one.

The exit code is 0 if all is fine or needs attention, and 1 if something failed.`,
		Example:           "  proofline doctor\n  proofline doctor --load 10s --send-test",
		Args:              cobra.NoArgs,
		RunE:              cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c) }),
		PersistentPreRunE: t.FromEnv,
	}
	f.manager.AddFlags(c)
	f.manager.AddOrganization(c)
	c.Flags().DurationVar(&f.length, "load", 0, "send joins to a rehearsal for this `TIME`, at most 1m (default none)")
	c.Flags().BoolVar(&f.sendTest, "send-test", false, "send a test alert to all who get alerts")
	return c
}

func (f *flags) run(c *cobra.Command) error {
	if f.length < 0 || f.length > maxLoad {
		return cli.Usage(fmt.Errorf("--load must be at most %s", maxLoad), "")
	}
	var found wire.Readiness
	if _, err := f.manager.Ask(c, "GET", "/v1/ready", nil, &found); err != nil {
		return err
	}
	if f.sendTest {
		found.Checks = append(found.Checks, f.test(c))
	}
	if f.length > 0 {
		capacity, err := f.capacity(c)
		if err != nil {
			return err
		}
		found.Checks = append(found.Checks, capacity)
	}
	for _, check := range found.Checks {
		if check.State == "failed" || check.State == "attention" && found.State == "ok" {
			found.State = check.State
		}
	}
	raw, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if err := f.manager.Print(json.RawMessage(raw), func() error { return f.print(found) }); err != nil {
		return err
	}
	if found.State == "failed" {
		return cli.Failed(errors.New("the server is not ready for a sale"), "")
	}
	return nil
}

// print prints a table, and below each line that is not fine what to do.
func (f *flags) print(found wire.Readiness) error {
	width := 0
	for _, check := range found.Checks {
		width = max(width, len(check.Name))
	}
	for _, check := range found.Checks {
		if err := f.manager.Printf("%-9s  %-*s  %s\n", check.State, width, check.Name, check.Text); err != nil {
			return err
		}
		if check.Do == "" {
			continue
		}
		if err := f.manager.Printf("%-9s  %-*s  > %s\n", "", width, "", check.Do); err != nil {
			return err
		}
	}
	return nil
}

// test sends a test alert.
func (f *flags) test(c *cobra.Command) wire.Check {
	check := wire.Check{Name: "test alert", State: "ok", Text: "A test alert is on its way: look whether it arrives."}
	if err := f.do(c, "POST", "/v1/alerts/test"); err != nil {
		check.State, check.Text = "failed", "The test alert was not sent: "+err.Error()+"."
		check.Do = "Name an address or a webhook under Alerts."
	}
	return check
}

// capacity sends joins to a rehearsal for a while.
func (f *flags) capacity(c *cobra.Command) (check wire.Check, err error) {
	check.Name = "capacity"
	config := `{"config": {"slug": "load-test", "title": "Load test", "beacon": "none", "windows": [{"length": "10s"}],
		"outflow": {"per_minute": 600}}}`
	var draft wire.Draft
	if _, err := f.manager.Ask(c, "POST", "/v1/drafts", []byte(config), &draft); err != nil {
		return check, err
	}
	var rehearsal wire.Rehearsal
	path := "/v1/drafts/" + draft.ID.String()
	if _, err = f.manager.Ask(c, "POST", path+"/rehearsals", []byte(`{"visitors": 10}`), &rehearsal); err == nil {
		check, err = f.send(c, rehearsal)
		err = errors.Join(err, f.do(c, "POST", "/v1/rehearsals/"+rehearsal.Slug+"/stop"))
	}
	return check, errors.Join(err, f.do(c, "DELETE", path))
}

// do sends a request whose answer has no body.
func (f *flags) do(c *cobra.Command, method, path string) error {
	client, err := f.manager.Client(c)
	if err != nil {
		return err
	}
	if _, err := client.Call(c.Context(), method, path, nil, nil); err != nil {
		return f.manager.Explain(err)
	}
	return nil
}

func (f *flags) send(c *cobra.Command, rehearsal wire.Rehearsal) (wire.Check, error) {
	check := wire.Check{Name: "capacity", State: "ok"}
	client, err := f.manager.Client(c)
	if err != nil {
		return check, err
	}
	target, err := url.Parse(client.Base + "/r/" + rehearsal.Slug)
	if err != nil {
		return check, err
	}
	if opens := time.Until(rehearsal.Opens); opens > 0 {
		select {
		case <-time.After(opens):
		case <-c.Context().Done():
			return check, context.Cause(c.Context())
		}
	}
	report, err := load.Run(c.Context(), load.Options{
		URL: target, Visitors: crowd, Concurrency: connections, Duration: f.length,
	})
	if err != nil {
		return check, cli.Unreachable(err, remote.NotRunning)
	}
	check.Text = fmt.Sprintf("%.0f joins a second over %s from this machine, p99 %.0f ms.",
		float64(report.Joined)/f.length.Seconds(), f.length, report.Latency["join"].P99)
	if refused := report.Errors["join"]["429"]; refused > 0 {
		check.State = "attention"
		check.Text = "The limit of joins per network ended the test."
		check.Do = "Start the server with --limit-exempt and this machine's network, such as 127.0.0.0/8."
	}
	return check, nil
}
