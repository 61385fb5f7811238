package serve

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/web/limit"
)

// limitFlags are the flags for the budgets per network.
type limitFlags struct {
	exempt []string
	all    int // joins a minute of all networks
}

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
	flags.IntVar(&f.all, "limit-joins-all", 0,
		"joins a minute in all rooms and of all networks: at most `N`, as many in a burst; 0: no limit")
	flags.IntVar(&o.Network.IPv4, "limit-ipv4-prefix", d.Network.IPv4, "`LENGTH` of the prefix that makes IPv4 addresses one network")
	flags.IntVar(&o.Network.IPv6, "limit-ipv6-prefix", d.Network.IPv6, "`LENGTH` of the prefix that makes IPv6 addresses one network")
	flags.StringSliceVar(&f.exempt, "limit-exempt", nil, "`NETWORKS` without limits, such as that of a load test")
	cli.InEnv(flags, "limit-joins", "limit-tickets", "limit-pages", "limit-passes", "limit-streams", "limit-exempt",
		"limit-joins-all", "limit-ipv4-prefix", "limit-ipv6-prefix")
}

const maxLimit = 10_000_000 // requests per minute; keeps intervals above a microsecond

func (f *limitFlags) check(o *limit.Options) (err error) {
	for _, n := range []int{o.Joins, o.Tickets, o.Pages, o.Passes, o.Streams, f.all} {
		if n < 0 || n > maxLimit {
			return cli.Usage(errors.New("the limits must be from 0 to 10000000"),
				"run proofline serve --help")
		}
	}
	if err := o.Network.Check(); err != nil {
		return cli.Usage(fmt.Errorf("--limit-ipv4-prefix, --limit-ipv6-prefix: %w", err), "a household has a /48 or less, and its carrier a /24 or more")
	}
	o.Exempt, err = parseNetworks("--limit-exempt", f.exempt)
	return err
}
