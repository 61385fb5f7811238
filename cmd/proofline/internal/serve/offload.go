package serve

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/room/export"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/source"
)

// OffloadCommand returns "proofline offload".
func OffloadCommand(t *cli.Terminal) *cobra.Command {
	var cfg server.Config
	var drop bool
	c := &cobra.Command{
		Use:   "offload SLUG",
		Short: "Move the transcript of a room that is over out of the database, to static files",
		Long: `Write the transcript of a room that has ended to static files below the directory
given with --archive-dir, and verify what was written. Any web server can publish
them, and "proofline-verify audit" verifies them, without a server.

With --drop the entries are removed from the database once the files are verified
and on the disk. From then on the servers read them from their own --archive-dir:
the room's page, places, receipts and the transcript stay as they are. A server
without that directory answers 503 for the room. Start all servers with the same
--archive-dir, or a copy of it, before you drop anything.

Removing entries takes the owner of the schema: give --owner-database-url, unless
the PostgreSQL is the server's private one.`,
		Example: `  proofline offload sale --archive-dir /srv/transcripts
  proofline-verify audit /srv/transcripts/sale
  proofline offload sale --archive-dir /srv/transcripts --drop`,
		Args:    cobra.ExactArgs(1),
		PreRunE: t.FromEnv,
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return offload(c.Context(), t, cfg, args[0], drop)
		}),
	}
	addStorage(c.Flags(), t, &cfg)
	c.Flags().BoolVar(&drop, "drop", false, "remove the entries from the database after the files are verified")
	return c
}

func offload(ctx context.Context, t *cli.Terminal, cfg server.Config, slug string, drop bool) (err error) {
	if cfg.ArchiveDir == "" {
		return cli.Usage(errors.New("the directory of the files is missing"),
			"give it with --archive-dir, as to the servers")
	}
	if cfg.ArchiveDir, err = filepath.Abs(cfg.ArchiveDir); err != nil {
		return err
	}
	rooms, err := openRooms(ctx, t, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rooms.Stop()) }()
	live := t.Live()
	defer live.Clear()
	archive := export.Archive(cfg.ArchiveDir)
	id, mark, err := archive.Write(ctx, rooms.Rooms, slug, progress(live, "verified"))
	live.Clear()
	switch {
	case errors.Is(err, source.ErrOtherLog):
		return cli.Failed(err, "it may be the only copy of another room: use another directory")
	case errors.Is(err, export.ErrFile):
		return cli.Failed(err, "nothing was removed: find out with proofline-verify what is wrong")
	case errors.Is(err, export.ErrNotOver):
		return cli.Failed(err, "end the room first: proofline room end "+slug+
			"; if it has just ended, try again in a few seconds")
	case err != nil:
		return explainExport(err, slug)
	}
	err = t.Printf("%s verified in %s\n", numeral.Count(mark.Size, "entry", "entries"), archive.Of(slug))
	if err != nil || !drop {
		return err
	}
	freed, err := pglog.Drop(ctx, rooms.OwnerURL, id, slug, mark)
	if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && refused.Code == insufficientPrivilege {
		return cli.Failed(err, "give --owner-database-url, the URL of the schema's owner")
	}
	if errors.Is(err, pglog.ErrMoved) {
		return cli.Failed(err, "nothing was removed")
	}
	if err != nil {
		return err
	}
	return t.Printf("removed from the database, whose tables are %s kB smaller\n", numeral.Group(uint64(max(freed, 0))/1000)) //nolint:gosec // not negative
}

// insufficientPrivilege is PostgreSQL's code for a missing right.
const insufficientPrivilege = "42501"
