package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/export"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/source"
)

// ExportCommand returns "proofline export".
func ExportCommand(t *cli.Terminal) *cobra.Command {
	var cfg server.Config
	c := &cobra.Command{
		Use:   "export SLUG FILE",
		Short: "Write a room that is over into a file, for another server or an archive",
		Long: `Write a room that has ended into a tar file: its whole transcript, what the log of
rooms says about it, and what its pages show. The file has no private key, no
session and no account. "proofline import" verifies it and stores the room on
another server; "proofline-verify audit FILE" verifies it without any server.

A room that is not over is refused: two servers must never continue one history.

Run it on the machine of a server, with that server's flags; the servers can keep
running. With a private PostgreSQL only --data is needed.`,
		Example: "  proofline export sale sale.tar\n  proofline-verify audit sale.tar",
		Args:    cobra.ExactArgs(2),
		PreRunE: t.FromEnv,
		RunE: cli.Runs(func(c *cobra.Command, args []string) error {
			return exportRoom(c.Context(), t, cfg, args[0], args[1])
		}),
	}
	addStorage(c.Flags(), t, &cfg)
	return c
}

func exportRoom(ctx context.Context, t *cli.Terminal, cfg server.Config, slug, name string) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return cli.Failed(fmt.Errorf("%s exists", name), "choose another name")
	}
	rooms, err := openRooms(ctx, t, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rooms.Stop()) }()
	file, err := os.CreateTemp(filepath.Dir(name), ".incomplete-*")
	if err != nil {
		return cli.Failed(err, "name a file in a directory that exists")
	}
	defer func() { err = errors.Join(err, file.Close(), gone(os.Remove(file.Name()))) }()
	live := t.Live()
	defer live.Clear()
	if err := export.Write(ctx, rooms.Rooms, slug, file, progress(live, "written")); err != nil {
		return explainExport(err, slug)
	}
	if err := errors.Join(file.Chmod(0o644), file.Sync()); err != nil {
		return err
	}
	written, closer, err := source.OpenTar(file.Name())
	if err != nil {
		return err
	}
	checked, err := export.Check(ctx, written, progress(live, "verified"))
	if err = errors.Join(err, closer.Close()); err != nil {
		return cli.Failed(err, "the file was not kept: find out with proofline-verify what is wrong with the room")
	}
	if err := os.Link(file.Name(), name); errors.Is(err, fs.ErrExist) {
		return err
	} else if err != nil { // not all file systems support links
		if err := os.Rename(file.Name(), name); err != nil {
			return err
		}
	}
	live.Clear()
	return t.Printf("%s of %s verified and written to %s\nimport it on another server with: "+
		"proofline import %s --vkey '%s'\ndo not send this key with the file: anybody who can replace both can replace "+
		"the room\n", numeral.Count(checked.Report.Entries, "entry", "entries"), cli.Printable(checked.Origin),
		name, name, cli.Printable(checked.VKey))
}

// gone drops the error of a file that is not there any more.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// progress shows the progress of a step on a live line.
func progress(live cli.Live, done string) export.Progress {
	return func(n, total uint64) {
		live.Show("%s of %s entries %s", numeral.Group(n), numeral.Group(total), done)
	}
}

func explainExport(err error, slug string) error {
	switch {
	case errors.Is(err, room.ErrNotFound):
		return cli.Failed(err, "check the name of the room, and --data or --database-url")
	case errors.Is(err, export.ErrNotOver):
		return cli.Failed(fmt.Errorf("%w: visitors may still join or be called, and two servers must never continue "+
			"one history", err), "end the room first: proofline room end "+slug+
			"; if it has just ended, try again in a few seconds")
	case errors.Is(err, export.ErrRehearsal):
		return cli.Failed(err, "export the room that was rehearsed")
	case errors.Is(err, export.ErrImported):
		return cli.Failed(err, "use the file that the room was imported from")
	case errors.Is(err, export.ErrHeld):
		return cli.Failed(err, "recover it first: proofline recover "+slug)
	}
	return err
}

type importFlags struct {
	server.Config
	slug         string
	organization string
	vkey         string
}

// ImportCommand returns "proofline import".
func ImportCommand(t *cli.Terminal) *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Verify a room in a file, and store it on this server with --vkey",
		Long: `Verify a room that "proofline export" has written, and store it on this server.
The whole transcript is audited with the code that auditors run, and every file is
compared with what is signed, before anything is stored. A file that is incomplete
or changed is refused.

Without --vkey the command shows what the file holds, and stores nothing. Anybody
can write such a file and sign it with a key of their own. So give the room's key as
the old server has it: "proofline export" and "proofline room show" print it there,
and the room's page "Was it fair?" shows it.

The room is over and stays over: this server shows it under its old name and key,
visitors can look up their places, and auditors can verify it. The private keys
are still on the old server, so nothing can be added. The log of rooms of this
server gets an entry which says that it took the room over.

Run it on the machine of a server, with that server's flags; the servers can keep
running. If it is interrupted, nothing of the room is stored: run it again.`,
		Example: "  proofline import sale.tar\n  proofline import sale.tar --vkey \"$KEY\"\n" +
			"  proofline import sale.tar --vkey \"$KEY\" --slug sale-2026 --organization arena",
		Args:    cobra.ExactArgs(1),
		PreRunE: t.FromEnv,
		RunE:    cli.Runs(func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) }),
	}
	flags := c.Flags()
	addStorage(flags, t, &f.Config)
	flags.StringVar(&f.vkey, "vkey", "", "`KEY` of the room on the old server; without it nothing is stored")
	flags.StringVar(&f.slug, "slug", "", "`NAME` of the room in addresses here (default as on the old server)")
	flags.StringVar(&f.organization, "organization", "main", "`SLUG` of the organization that gets the room")
	flags.StringVar(&f.PublicURL, "public-url", "",
		"public `URL` of this server, which its log of rooms is named after; needed only if it has had no room yet, "+
			"or has another address now")
	cli.InEnv(flags, "public-url")
	return c
}

func (f *importFlags) run(ctx context.Context, t *cli.Terminal, name string) (err error) {
	if f.PublicURL != "" {
		if f.PublicURL, err = server.ParsePublicURL(f.PublicURL); err != nil {
			return cli.Usage(fmt.Errorf("--public-url: %w", err),
				"give scheme and host, such as https://queue.example.com")
		}
	}
	if f.slug != "" && setting.Check("slug", f.slug) != nil {
		return cli.Usage(fmt.Errorf("--slug: %.80q", f.slug), "give 1 to 63 of a-z, 0-9 and -")
	}
	if f.vkey != "" {
		if _, err := audit.ParseKey(f.vkey); err != nil {
			return cli.Usage(fmt.Errorf("--vkey: %w", err), "give the whole key, in quotes, as the old server shows it")
		}
	}
	live := t.Live()
	defer live.Clear()
	file, closer, err := source.OpenTar(name)
	if err != nil {
		return cli.Failed(err, "give a file that proofline export has written")
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	checked, err := export.Check(ctx, file, progress(live, "verified"))
	if err != nil {
		return cli.Failed(err, "nothing was stored: export the room again, and copy the file without changes")
	}
	live.Clear()
	switch f.vkey {
	case "":
		return preview(t, checked)
	case checked.VKey:
	default:
		return cli.Failed(fmt.Errorf("the room in the file has another key: %s", cli.Printable(checked.VKey)),
			"nothing was stored: get the file from the old server again, and compare --vkey with the key there")
	}
	rooms, err := openRooms(ctx, t, f.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rooms.Stop()) }()
	to := export.Target{Slug: f.slug}
	if to.Org, err = rooms.Store.OrgOf(ctx, f.organization); errors.Is(err, pgroom.ErrNotFound) {
		return cli.Failed(fmt.Errorf("no organization %.80q", f.organization), "see proofline organization list")
	} else if err != nil {
		return err
	}
	live.Show("storing")
	if err := export.Import(ctx, rooms.Rooms, checked, to); err != nil {
		return explainImport(err)
	}
	live.Clear()
	slug := checked.Slug
	if f.slug != "" {
		slug = f.slug
	}
	return t.Printf("%s of %s verified at level %d and stored\nit was listed in the log of rooms %s, and is shown here at /r/%s\n",
		numeral.Count(checked.Report.Entries, "entry", "entries"), cli.Printable(checked.Origin), checked.Report.Level,
		cli.Printable(checked.Server), slug)
}

// preview prints what a file holds.
func preview(t *cli.Terminal, c *export.Checked) error {
	moment := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }
	ended := moment(c.Ended)
	if c.IsLost {
		ended += ", because entries are lost"
	}
	err := t.PrintTable([][]string{
		{"room", c.Origin}, {"title", c.Title}, {"size", numeral.Count(c.Report.Entries, "entry", "entries")},
		{"created", moment(c.Created)}, {"ended", ended}, {"key", c.VKey},
		{"log of rooms", c.Server}, {"its key", c.ServerVKey},
	}...)
	return errors.Join(err, t.Printf("The file is consistent. Only its key tells whether it is the old server's room:\n"+
		"compare it with the one there. With --vkey KEY the room is stored.\n"))
}

func explainImport(err error) error {
	switch {
	case errors.Is(err, register.ErrOwn):
		return cli.Failed(err, "nothing was stored: the address would confirm a room that was never there; "+
			"import rooms of a host before this server gets it, or publish the transcript with proofline-verify fetch")
	case errors.Is(err, export.ErrExists):
		return cli.Failed(err, "nothing was changed")
	case errors.Is(err, export.ErrTaken):
		return cli.Failed(err, "give it another name here with --slug")
	case errors.Is(err, register.ErrNameless):
		return cli.Failed(err, "give the server's address with --public-url, exactly as proofline serve has it")
	case errors.Is(err, register.ErrHeld):
		return cli.Failed(err, "recover the log of rooms first")
	}
	return err
}
