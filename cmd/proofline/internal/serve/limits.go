package serve

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/web/limit"
)

// limitFlags are the flags for the budgets per network.
type limitFlags struct{ exempt []string }

func (f *limitFlags) add(flags *pflag.FlagSet, o *limit.Options) {
	d := limit.Default()
	flags.IntVar(&o.Joins, "limit-joins", d.Joins,
		"joins and credentials shown later, a minute per network, a /24 or an IPv6 /48: at most `N`, in a burst twice "+
			"as many; 0: no limit")
	flags.IntVar(&o.Tickets, "limit-tickets", d.Tickets,
		"tickets of a room per network and day: at most `N`; 0: no limit")
	flags.IntVar(&o.Pages, "limit-pages", d.Pages,
		"rendered pages a minute per network: at most `N`, in a burst twice as many; 0: no limit")
	flags.IntVar(&o.Passes, "limit-passes", d.Passes,
		"invalid passes a minute per network in batches: at most `N`, in a burst ten times as many; 0: no limit")
	flags.IntVar(&o.Streams, "limit-streams", d.Streams, "open event streams per network: at most `N`; 0: no limit")
	flags.StringSliceVar(&f.exempt, "limit-exempt", nil, "`NETWORKS` without limits, such as that of a load test")
	cli.InEnv(flags, "limit-joins", "limit-tickets", "limit-pages", "limit-passes", "limit-streams", "limit-exempt")
}

const maxLimit = 10_000_000 // requests per minute; keeps intervals above a microsecond

func (f *limitFlags) check(o *limit.Options) (err error) {
	for _, n := range []int{o.Joins, o.Tickets, o.Pages, o.Passes, o.Streams} {
		if n < 0 || n > maxLimit {
			return cli.Usage(errors.New("the limits per network must be from 0 to 10000000"),
				"run proofline serve --help")
		}
	}
	o.Exempt, err = parseNetworks("--limit-exempt", f.exempt)
	return err
}
