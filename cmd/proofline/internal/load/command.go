package load

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
)

// Limits of a run.
const (
	maxVisitors    = 10_000_000
	maxConcurrency = 10_000
	maxDuration    = 24 * time.Hour
)

type loadFlags struct {
	Options
	server     remote.Server
	mine, json bool
}

// Command returns "proofline load".
func Command(t *cli.Terminal) *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load ROOM",
		Short: "Send a crowd to a room, and measure what its visitors experience",
		Long: `Send a crowd to a room: visitors join at a rate, poll as often as the server asks,
and claim when they are called.

Use it for your own servers. It refuses machines other than this one unless
you say that the site is yours. ROOM is the last part of the room's address, such
as sale, or the whole address.`,
		Example: `  proofline load sale --visitors 10000 --rate 500
  proofline load sale --server http://127.0.0.1:8080 --visitors 100000 --rate 0 --duration 30s --json`,
		Args:              cobra.ExactArgs(1),
		RunE:              cli.Runs(func(c *cobra.Command, args []string) error { return f.run(c, t, args[0]) }),
		PersistentPreRunE: t.FromEnv,
	}
	flags := c.Flags()
	f.server.AddFlags(flags, t)
	flags.IntVar(&f.Visitors, "visitors", 1000, "send `N` visitors")
	flags.Float64Var(&f.Rate, "rate", 100, "send `N` visitors a second; 0: as fast as the server answers")
	flags.IntVar(&f.Concurrency, "concurrency", 64, "use `N` connections")
	flags.DurationVar(&f.Duration, "duration", time.Minute, "`TIME` after which visitors who are still waiting give up")
	flags.BoolVar(&f.mine, "i-own-this-site", false, "allow another machine as the target")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	return c
}

func (f *loadFlags) run(c *cobra.Command, t *cli.Terminal, room string) error {
	if err := f.check(room); err != nil {
		return err
	}
	live := t.Live()
	f.Progress = func(p Progress) {
		live.Show("%d joined, %d admitted, %d errors", p.Joined, p.Admitted, p.Errors)
	}
	report, err := Run(c.Context(), f.Options)
	live.Clear()
	switch {
	case errors.Is(err, ErrUnreachable):
		return cli.Unreachable(err, remote.NotRunning)
	case err != nil:
		return cli.Failed(err, "list the rooms: proofline room list")
	}
	if f.json {
		err = t.PrintJSON(report)
	} else {
		err = printLoad(t, report)
	}
	if err == nil && report.Joined < int64(report.Visitors) && c.Context().Err() == nil {
		hint := ""
		if report.Errors["join"]["429"] > 0 {
			hint = "the server limits joins per network: start it with --limit-exempt and this machine's network, " +
				"such as 127.0.0.0/8"
		}
		missing := int64(report.Visitors) - report.Joined
		err = cli.Failed(fmt.Errorf("%d of %d visitors did not join", missing, report.Visitors), hint)
	}
	return err
}

// target returns the address of the room that the command line names.
func (f *loadFlags) target(room string) (*url.URL, error) {
	if !strings.Contains(room, "/") {
		u, err := f.server.URL()
		if err != nil {
			return nil, err
		}
		return url.Parse(u.JoinPath("r", room).String()) // parsed again so that the path begins with a slash
	}
	u, err := url.Parse(room)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, cli.Usage(fmt.Errorf("%q is not the address of a room", room),
			"give one such as sale or http://127.0.0.1:8080/r/sale")
	}
	return u, nil
}

func (f *loadFlags) check(room string) error {
	u, err := f.target(room)
	if err != nil {
		return err
	}
	f.URL = u
	switch {
	case f.Visitors < 1 || f.Visitors > maxVisitors:
		return cli.Usage(fmt.Errorf("--visitors must be between 1 and %d", maxVisitors), "")
	case !(f.Rate >= 0): // or NaN
		return cli.Usage(errors.New("--rate must not be below 0"), "")
	case f.Concurrency < 1 || f.Concurrency > maxConcurrency:
		return cli.Usage(fmt.Errorf("--concurrency must be between 1 and %d", maxConcurrency), "")
	case f.Duration <= 0 || f.Duration > maxDuration:
		return cli.Usage(fmt.Errorf("--duration must be above 0 and at most %s", maxDuration), "")
	case !f.mine && !remote.IsLoopback(u.Hostname()):
		return cli.Usage(fmt.Errorf("%s is not this machine", u.Hostname()),
			"load on a site that is not yours is an attack; give --i-own-this-site if it is yours")
	}
	return nil
}

func printLoad(t *cli.Terminal, r *Report) error {
	rows := [][]string{{"REQUEST", "ANSWERED", "P50", "P90", "P99", "MAX", "ERRORS"}}
	for _, kind := range []string{"join", "ticket", "state", "claim"} {
		l := r.Latency[kind]
		ms := func(x float64) string { return fmt.Sprintf("%.1f ms", x) }
		rows = append(rows, []string{kind, fmt.Sprint(l.Count), ms(l.P50), ms(l.P90), ms(l.P99), ms(l.Max),
			errorList(r.Errors[kind])})
	}
	err := t.Printf("%d of %d visitors joined, %.0f a second; %d admitted, %d too late, %d unfinished, in %.1f s\n\n",
		r.Joined, r.Visitors, r.JoinsPerSecond, r.Admitted, r.Expired, r.Unfinished, r.Seconds)
	return errors.Join(err, t.PrintTable(rows...))
}

// errorList lists how often each status occurred.
func errorList(byStatus map[string]uint64) string {
	var list []string
	for status, n := range byStatus {
		list = append(list, fmt.Sprintf("%d x %s", n, status))
	}
	slices.Sort(list)
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
