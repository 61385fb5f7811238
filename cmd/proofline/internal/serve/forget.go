package serve

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/console/retention"
)

// addKeep adds the flag for how long personal data is kept.
func addKeep(flags *pflag.FlagSet, keep *retention.Keep) {
	*keep = retention.Default
	flags.Var(keep, "keep-personal",
		"delete personal data this many `DAYS` after it was last needed, such as 90d; forever: keep it; "+
			"docs/operate/PRIVACY.md says when they start")
	cli.InEnv(flags, "keep-personal")
}

type forgetFlags struct {
	server.Config
	yes bool
}

// ForgetCommand returns "proofline forget".
func ForgetCommand(t *cli.Terminal) *cobra.Command {
	var f forgetFlags
	c := &cobra.Command{
		Use:   "forget",
		Short: "Show personal data that is due for deletion, and delete it with --yes",
		Long: `Show what personal data is kept longer than it should be, by table; with --yes
delete it. Servers do the same by themselves, every ten minutes: this is for those
who want to see it first, or who have just chosen a shorter time. It shows what time
it goes by, the earlier of the database's and this machine's: check that it is right.

Run it on the machine of a server, with that server's flags; the servers can keep
running. With a private PostgreSQL only --data is needed. Transcripts are
never changed, and verify as before.`,
		Example: `  proofline forget
  proofline forget --keep-personal 30d --yes`,
		Args:    cobra.NoArgs,
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) }),
	}
	flags := c.Flags()
	addStorage(flags, t, &f.Config)
	addKeep(flags, &f.KeepPersonal)
	flags.BoolVar(&f.yes, "yes", false, "delete it instead of only counting")
	return c
}

func (f *forgetFlags) run(ctx context.Context, t *cli.Terminal) (err error) {
	f.Log = slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	if f.Data, err = filepath.Abs(f.Data); err != nil {
		return err
	}
	f.DatabaseWait = time.Second
	job, closeAll, err := server.Forget(ctx, f.Config)
	if err != nil {
		return server.Explain(err)
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	times, err := job.Times(ctx)
	if err != nil {
		return err
	}
	due, err := job.Preview(ctx)
	if err != nil {
		return err
	}
	rows, total := [][]string{{"TABLE", "ROWS", "", "WHAT"}}, int64(0)
	for _, d := range due {
		total += d.Count
		if d.Count > 0 {
			rows = append(rows, []string{d.Name, strconv.FormatInt(d.Count, 10), deletion(d), d.Holds})
		}
	}
	kept := "for " + f.KeepPersonal.String()
	if f.KeepPersonal == retention.Forever {
		kept = "forever"
	}
	kept += ", and it is " + times.Now.UTC().Format("2006-01-02 15:04:05 UTC") + " now"
	if total == 0 {
		return t.Printf("nothing is due: personal data is kept %s\n", kept)
	}
	err = t.Printf("personal data is kept %s; this is due:\n", kept)
	if err = errors.Join(err, t.PrintTable(rows...)); err != nil {
		return err
	}
	if !f.yes {
		return t.Printf("With --yes it is deleted.\n")
	}
	if err := job.Delete(ctx); err != nil {
		return err
	}
	if due, err = job.Preview(ctx); err != nil {
		return err
	}
	left := int64(0)
	for _, d := range due {
		left += d.Count
	}
	if left > 0 {
		return t.Printf("%d rows are left: a server is deleting them now.\n", left)
	}
	return t.Printf("It is deleted.\n")
}

// deletion says what becomes of what is due.
func deletion(d retention.Due) string {
	if d.Kept {
		return "names are blanked"
	}
	return "deleted"
}
