package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/rooms"
)

type roomsFlags struct {
	vkey      string
	witnesses []string
	kept      auditFlags // its flags about kept checkpoints
	json      bool
}

func roomsCommand(t *terminal) *cobra.Command {
	var f roomsFlags
	c := &cobra.Command{
		Use:   "rooms URL|DIR",
		Short: "Check a server's log of rooms, and list its rooms",
		Long: `Check the log of rooms: a public log in which a server records every room that it
creates, before anyone can join, and the end of each. An operator who dislikes a
draw cannot throw the room away and start another without leaving a trace.

Give the address of the server, of a room on it, or of the log itself. The command
checks signature, entries and tiles, cosignatures of the witnesses that you name,
and that the log continues the one of your earlier check.

Exit code 0: the log is intact; 1: it is wrong, or something was removed from it;
3: it could not be read, which proves nothing.`,
		Example: `  proofline-verify rooms https://example.com
  proofline-verify rooms https://example.com/r/sale --witness @witness.vkey --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log of rooms: the key itself, or @FILE (default: the one in its first entry)")
	c.Flags().StringArrayVar(&f.witnesses, "witness", nil,
		"`KEY` of a witness that is independent of the operator: the key itself, or @FILE; may be repeated")
	c.Flags().StringVar(&f.kept.kept, "kept", "", "compare with the checkpoint in this `FILE` instead of the kept one")
	c.Flags().StringVar(&f.kept.state, "state", "",
		"keep checkpoints in this `DIR` (default: $XDG_STATE_HOME/proofline-verify)")
	c.Flags().BoolVar(&f.kept.noKeep, "no-keep", false, "do not read or keep checkpoints")
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	c.MarkFlagsMutuallyExclusive("state", "no-keep")
	return c
}

// inRoom matches the path of a room below its server's address.
var inRoom = regexp.MustCompile(`/r/[^/]+$`)

// registerAddress returns the address of the log of rooms for the address of a server, of a room, or of the log; a
// directory is returned as it is. isRoom reports whether it was the address of a room.
func registerAddress(arg string) (address string, isRoom bool) {
	u, err := url.Parse(arg)
	if err != nil || u.Host == "" {
		return arg, false
	}
	u.Path = strings.TrimRight(strings.TrimSuffix(u.Path, "/checkpoint"), "/")
	u.RawPath = ""
	isRoom = inRoom.MatchString(u.Path)
	if u.Path = inRoom.ReplaceAllString(u.Path, ""); isRoom || !strings.HasSuffix(u.Path, "/"+roomlog.Path) {
		u.Path += "/" + roomlog.Path
	}
	return u.String(), isRoom
}

// errRewritten is returned for a log of rooms that does not continue the one of an earlier check.
var errRewritten = errors.New("the log of rooms is not the one of the earlier check")

// register is a log of rooms that was read, and compared with an earlier one.
type register struct {
	rooms.Log
	signed []byte
}

// readRegister reads a log of rooms, and compares it with the checkpoint that was kept of the log of that name or, if
// it has another name than its address, of the log at the address: otherwise a replaced log would only need a new name.
// Errors for which isWrong is true are about the log, all others about reading it.
func readRegister(ctx context.Context, address, vkey string, witnesses []audit.Witness,
	kept func(origin string) ([]byte, error)) (*register, error) {
	src, err := open(address)
	if err != nil {
		return nil, err
	}
	g := &register{Log: rooms.Log{Address: address}}
	if g.signed, err = src.Checkpoint(ctx); err != nil {
		return nil, err
	}
	if g.Published, err = roomlog.Read(ctx, src.Tile, g.signed, vkey, witnesses...); err != nil {
		return nil, err
	}
	g.IsNamed = vkey != "" || named(address, g.Head.Origin)
	name := g.Head.Origin
	if !g.IsNamed {
		name = addressName(address)
	}
	earlier, err := kept(name)
	if err == nil && earlier != nil {
		err = g.compare(ctx, src, earlier)
	}
	return g, err
}

// isWrong reports whether an error says that the log itself is wrong.
func isWrong(err error) bool {
	return !errors.Is(err, roomlog.ErrNoLog) &&
		(errors.Is(err, roomlog.ErrWrong) || errors.Is(err, roomlog.ErrEntry) || errors.Is(err, errRewritten))
}

// compare checks that the log continues an earlier checkpoint.
func (g *register) compare(ctx context.Context, src verifier.Source, earlier []byte) error {
	key, err := audit.ParseKey(g.VKey())
	if err != nil {
		return fmt.Errorf("%w: %w", errRewritten, err)
	}
	old, _, err := audit.OpenCheckpoint(earlier, key)
	switch {
	case err != nil:
		return fmt.Errorf("%w: its key has changed, and it is %s: %w", errRewritten, printable(g.Head.Origin), err)
	case old.Size > g.Head.Size:
		return fmt.Errorf("%w: it had %s and now has %s", errRewritten, numeral.Count(old.Size, "entry", "entries"),
			numeral.Count(g.Head.Size, "entry", "entries"))
	}
	if _, err = audit.ProveConsistency(ctx, src.Tile, old, g.Head); errors.Is(err, audit.ErrConsistency) {
		return fmt.Errorf("%w: its first %s were replaced", errRewritten, numeral.Count(old.Size, "entry", "entries"))
	}
	g.Kept = old.Size
	return err
}

func (f *roomsFlags) run(ctx context.Context, t *terminal, arg string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	trust, err := (&trustFlags{witnesses: f.witnesses}).parse()
	if err != nil {
		return err
	}
	address, _ := registerAddress(arg)
	var keeper *keeper
	g, err := readRegister(ctx, address, vkey, known(trust), func(origin string) ([]byte, error) {
		keeper = newKeeper(&f.kept, t, origin)
		return keeper.load()
	})
	var over *exit
	switch {
	case errors.As(err, &over):
		return over
	case errors.Is(err, errRewritten):
		return &exit{exitFailed, err, fmt.Sprintf("keep both: the earlier checkpoint is in %s; "+
			"prove it to others: proofline-verify compare %[1]s %s", quoted(keeper.from()), quoted(address))}
	case isWrong(err):
		return &exit{exitFailed, err, "read it again; if it stays wrong, keep it as evidence"}
	case errors.Is(err, roomlog.ErrNoLog), errors.Is(err, fs.ErrNotExist):
		return &exit{exitUnreadable, err, "a server has a log of rooms from its first room on; " +
			"check the address, or give that of the log itself"}
	case err != nil:
		return unreadable(err)
	}
	if f.json {
		err = writeJSON(t.out, g.JSON())
	} else {
		err = t.printRegister(g, len(trust.Witnesses))
	}
	if err != nil {
		return unreadable(err)
	}
	if g.IsNamed { // otherwise it would be compared with the real log of that name
		keeper.save(g.signed)
	}
	return nil
}

// known returns the witnesses that the user trusts.
func known(trust verifier.Trust) (list []audit.Witness) {
	for _, key := range trust.Witnesses {
		w, _ := audit.ParseWitness(key) // parse has checked it
		list = append(list, w)
	}
	return list
}
