package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/room/regression"
)

// maxTickets is the number of tickets of each kind that are listed.
const maxTickets = 20

type recoverFlags struct {
	server.Config
	from      string
	statement string
	overrule  bool
	yes       bool
}

// RecoverCommand returns "proofline recover".
func RecoverCommand(t *cli.Terminal) *cobra.Command {
	var f recoverFlags
	c := &cobra.Command{
		Use:   "recover SLUG",
		Short: "Recover a room whose database lost entries",
		Long: `Recover a held room: its database lacks entries of the transcript that were
published, because a backup was restored, or because a standby that lagged behind
took over.

Without flags the command shows what is missing. With --from it shows which of the
missing entries a copy has; with --yes as well it stores them exactly as they were,
and the room continues. A copy is a directory that proofline-verify has fetched,
the room's URL on a server that still publishes it, or the URL of a database that
has the entries, such as the primary before the failover.

If no copy is left, --end-with ends the room for good with your words, in a
statement signed with the room's key. The transcript never continues without the
missing entries: that would be a second history under the same key.

Run it on the machine of a server, with that server's flags; the servers can keep
running. With a private PostgreSQL only --data is needed.`,
		Example: `  proofline recover sale
  proofline recover sale --from ./sale-copy
  proofline recover sale --from postgres://old-primary.example.com/proofline --yes
  proofline recover sale --end-with "The database was lost. Tickets are refunded." --yes`,
		Args:    cobra.ExactArgs(1),
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) }),
	}
	flags := c.Flags()
	addStorage(flags, t, &f.Config)
	flags.StringVar(&f.from, "from", "",
		"`COPY` with the missing entries: a directory, a room's URL, or a database's URL")
	flags.StringVar(&f.statement, "end-with", "", "end the room for good with these `WORDS` to its visitors")
	flags.BoolVar(&f.overrule, "overrule-witness", false,
		"continue the room although a witness has seen another history; only if you know that the witness is wrong")
	flags.BoolVar(&f.yes, "yes", false, "make the change instead of only showing it")
	c.MarkFlagsMutuallyExclusive("from", "end-with", "overrule-witness")
	return c
}

func (f *recoverFlags) run(ctx context.Context, t *cli.Terminal, slug string) (err error) {
	rooms, err := openRooms(ctx, t, f.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rooms.Stop()) }()
	rec, err := rooms.Recover(ctx, slug)
	if err != nil {
		return cli.Failed(err, "check the name of the room, and --data or --database-url")
	}
	if err := showRegression(t, slug, rec); err != nil {
		return err
	}
	switch {
	case f.from != "":
		return f.recoverFrom(ctx, t, slug, rec)
	case f.statement != "" && f.yes:
		signed, err := rec.End(ctx, f.statement)
		if err != nil {
			return err
		}
		return t.Printf("The room has ended, with this statement:\n\n%s", signed)
	case f.statement != "":
		return t.Printf("With --yes the room ends for good with a signed statement.\n")
	case f.overrule && f.yes:
		if err := rec.Overrule(ctx); err != nil {
			return err
		}
		return t.Printf("The room continues. It ignores that witness's view of its first %d entries.\n", rec.Had.Size)
	case f.overrule:
		return t.Printf("With --yes the room continues despite that witness.\n")
	}
	return nil
}

// openRooms opens the database of a server for a command that works on its rooms.
func openRooms(ctx context.Context, t *cli.Terminal, cfg server.Config) (*server.Opened, error) {
	cfg.Log = slog.New(slog.NewTextHandler(t.Err, &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	if cfg.Data, err = filepath.Abs(cfg.Data); err != nil {
		return nil, err
	}
	rooms, err := server.OpenRooms(ctx, cfg)
	if err != nil {
		return nil, server.Explain(err)
	}
	return rooms, nil
}

// showRegression prints what is missing, as far as that is known without a copy.
func showRegression(t *cli.Terminal, slug string, rec *regression.Recovery) error {
	if rec.Statement != "" {
		return t.Printf("room %s has ended with a statement:\n\n%s", cli.Printable(slug), cli.Printable(rec.Statement))
	}
	if err := t.Printf("room %s has %d entries with root %v\n", cli.Printable(slug), rec.Has.Size,
		rec.Has.Root); err != nil {
		return err
	}
	if rec.By == "" {
		return t.Printf("no entries are known to be missing\n")
	}
	root := ""
	if rec.HasRoot() {
		root = fmt.Sprintf(" with root %v", rec.Had.Root)
	}
	if err := t.Printf("%s has seen %d entries%s\n", cli.Printable(rec.By), rec.Had.Size, root); err != nil {
		return err
	}
	if rec.Had.Size > rec.Has.Size {
		return t.Printf("missing: entries %d to %d. Find a copy that has them, and give it with --from.\n",
			rec.Has.Size, rec.Had.Size-1)
	}
	return t.Printf("the database has a different history than the published one: find the right database or a copy\n")
}

func (f *recoverFlags) recoverFrom(ctx context.Context, t *cli.Terminal, slug string, rec *regression.Recovery) error {
	read, err := server.CopyOf(f.from, slug, rec.VKey())
	if err != nil {
		return cli.Failed(err, "give a directory of proofline-verify fetch, a room's URL, or a database's URL")
	}
	loss, err := rec.Compare(ctx, read)
	if loss != nil {
		if err := showLoss(t, loss); err != nil {
			return err
		}
	}
	if err != nil {
		return cli.Failed(err, "look for another copy; auditors and witnesses may have one")
	}
	if !f.yes {
		return t.Printf("With --yes these entries are stored, and the room continues.\n")
	}
	if err := rec.Continue(ctx, loss); err != nil {
		return err
	}
	return t.Printf("The room continues with %d entries.\n", loss.To)
}

// showLoss prints the entries that the database lacks and a copy has, and the visitors concerned.
func showLoss(t *cli.Terminal, loss *regression.Loss) error {
	if loss.To <= loss.From {
		return t.Printf("the copy has no more entries than the database\n")
	}
	err := t.Printf("the copy has %d more entries, %d to %d:\n", loss.To-loss.From, loss.From, loss.To-1)
	for _, kind := range slices.Sorted(maps.Keys(loss.Kinds)) {
		err = errors.Join(err, t.Printf("  %6d %s\n", loss.Kinds[kind], kind))
	}
	for _, list := range []struct {
		title   string
		tickets []string
	}{{"visitors with a receipt", texts(loss.Tickets)}, {"visitors with a pass", texts(loss.Admitted)}} {
		if n := len(list.tickets); n > 0 {
			err = errors.Join(err, t.Printf("%d %s:\n", n, list.title))
			for _, ticket := range list.tickets[:min(n, maxTickets)] {
				err = errors.Join(err, t.Printf("  %s\n", ticket))
			}
			if n > maxTickets {
				err = errors.Join(err, t.Printf("  and %d more\n", n-maxTickets))
			}
		}
	}
	return err
}

func texts[T fmt.Stringer](list []T) []string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = v.String()
	}
	return texts
}
