package account

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/remote"
	"github.com/proofline/proofline/internal/wire"
)

func quotaCommand(m *remote.Manager) *cobra.Command {
	var in wire.QuotaInput
	c := &cobra.Command{
		Use:   "quota SLUG",
		Short: "Show or change what an organization may use",
		Long: `Show what an organization may use of the server and what it uses; with flags, change
that first. A limit that is not named stays. What exceeds a new limit stays, too:
rooms go on, and visitors keep their places.`,
		Example: "  proofline organization quota arena\n  proofline organization quota arena --rooms 20 --waiting 100000",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			m.ActIn(args[0])
			var usage wire.QuotaUsage
			raw, err := m.Ask(c, "GET", "/v1/quota", nil, &usage)
			if err != nil {
				return err
			}
			if changed := keep(c, &in, usage); changed {
				body, err := json.Marshal(in)
				if err != nil {
					return err
				}
				if raw, err = m.Ask(c, "PUT", "/v1/quota", body, &usage); err != nil {
					return err
				}
			}
			return m.Print(raw, func() error {
				return m.PrintTable([]string{"LIMIT", "USED", "AT MOST"}, row("rooms", usage.Rooms),
					row("waiting", usage.Waiting), row("streams", usage.Streams), row("entries", usage.Entries))
			})
		}),
	}
	c.Flags().Uint64Var(&in.Rooms, "rooms", 0, "at most `N` rooms that have not ended; 0: no limit")
	c.Flags().Uint64Var(&in.Waiting, "waiting", 0, "at most `N` visitors in line in all rooms together; 0: no limit")
	c.Flags().Uint64Var(&in.Streams, "streams", 0, "at most `N` open streams of events at each server; 0: no limit")
	c.Flags().Uint64Var(&in.Entries, "entries", 0,
		"at most `N` entries of all transcripts, three or four for each visitor; 0: no limit")
	return c
}

// keep sets the limits that no flag names to what they are, and reports whether a flag names one.
func keep(c *cobra.Command, in *wire.QuotaInput, usage wire.QuotaUsage) (isChange bool) {
	for name, limit := range map[string]struct {
		in  *uint64
		was wire.Use
	}{
		"rooms": {&in.Rooms, usage.Rooms}, "waiting": {&in.Waiting, usage.Waiting},
		"streams": {&in.Streams, usage.Streams}, "entries": {&in.Entries, usage.Entries},
	} {
		if c.Flags().Changed(name) {
			isChange = true
		} else {
			*limit.in = limit.was.Most
		}
	}
	return isChange
}

func row(name string, u wire.Use) []string {
	most := "no limit"
	if u.Most > 0 {
		most = strconv.FormatUint(u.Most, 10)
	}
	return []string{name, strconv.FormatUint(u.Used, 10), most}
}
