package main

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/web/limit"
)

// limitFlags are the flags of the budgets of networks.
type limitFlags struct{ exempt []string }

func (f *limitFlags) add(flags *pflag.FlagSet, o *limit.Options) {
	d := limit.Default()
	flags.IntVar(&o.Joins, "limit-joins", d.Joins, "record at most `N` joins a minute from one network, a /24 or, in IPv6, a /48, and twice as many at once; 0: no limit")
	flags.IntVar(&o.Tickets, "limit-tickets", d.Tickets, "give one network at most `N` tickets of a room within a day; 0: no limit")
	flags.IntVar(&o.Pages, "limit-pages", d.Pages, "render at most `N` pages a minute for one network, and twice as many at once; 0: no limit")
	flags.IntVar(&o.Passes, "limit-passes", d.Passes, "verify at most `N` invalid passes a minute in batches from one network, and ten times as many at once; 0: no limit")
	flags.IntVar(&o.Streams, "limit-streams", d.Streams, "keep at most `N` streams of events open for one network; 0: no limit")
	flags.StringSliceVar(&f.exempt, "limit-exempt", nil, "`NETWORKS` that no limit is for, such as that of a load test")
	inEnv(flags, "limit-joins", "limit-tickets", "limit-pages", "limit-passes", "limit-streams", "limit-exempt")
}

// maxLimit keeps the interval between two of a minute's above a microsecond.
const maxLimit = 10_000_000

func (f *limitFlags) check(o *limit.Options) (err error) {
	for _, n := range []int{o.Joins, o.Tickets, o.Pages, o.Passes, o.Streams} {
		if n < 0 || n > maxLimit {
			return usage(errors.New("the limits of a network are whole numbers from 0 to 10000000"), "run proofline serve --help")
		}
	}
	o.Exempt, err = parseNetworks("--limit-exempt", f.exempt)
	return err
}
