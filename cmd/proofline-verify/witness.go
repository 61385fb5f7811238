package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit/witness"
)

const (
	// reloadEvery is how often the file of logs is read again, and rooms that
	// could not be reached are asked for their key.
	reloadEvery = 10 * time.Second
	// graceful is how long requests under way may take when the program stops.
	graceful = 10 * time.Second
)

type witnessFlags struct {
	name    string
	dir     string
	addr    string
	prefix  string
	logs    []string
	verbose bool
}

func witnessCommand(t *terminal) *cobra.Command {
	var f witnessFlags
	c := &cobra.Command{
		Use:   "witness",
		Short: "Run a witness, which cosigns the checkpoints of rooms",
		Long: `Run a witness: it remembers the newest checkpoint of each room it follows, and
cosigns a newer one only with a proof that nothing before it was rewritten. A
room that shows two histories gets no cosignature for the second, and both
checkpoints are kept.

The first run makes a key and prints its public half: give that to the operator
of the room, with the address under which this program can be reached. What the
witness has seen is in the directory; never put back an older copy of it.

Rooms are given with --log, or in the file "logs" in the directory, one a line,
which is read again when it changes: the verifier key of the room, or its
address, whose key is read once and then pinned.

Any log of https://c2sp.org/tlog-witness can be followed.`,
		Example: `  proofline-verify witness --name example.org/witness --addr :8091 \
    --log https://queue.example.com/r/sale`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) },
	}
	c.Flags().StringVar(&f.name, "name", "", "`NAME` of the witness, a URL without scheme; needed the first time")
	c.Flags().StringVar(&f.dir, "dir", "", "keep key and state in this `DIR` (default $XDG_STATE_HOME/proofline-verify/witness)")
	c.Flags().StringVar(&f.addr, "addr", "localhost:8091", "`HOST:PORT` to listen on, for HTTP without TLS")
	c.Flags().StringVar(&f.prefix, "prefix", "", "`PATH` below which to serve, such as /witness")
	c.Flags().StringArrayVar(&f.logs, "log", nil, "log to follow, a `KEY|URL`: its verifier key, or the address of a room; may be repeated")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "log every request")
	return c
}

// prefixes are the paths a witness can be served below.
var prefixes = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)

func (f *witnessFlags) run(ctx context.Context, t *terminal) error {
	if !prefixes.MatchString(f.prefix) {
		return usage(fmt.Errorf("--prefix: %q is no path", f.prefix), "give a path such as /witness")
	}
	if f.dir == "" {
		f.dir = stateDir(t.env)
		if f.dir == "" {
			return usage(errors.New("no place for the key: neither XDG_STATE_HOME nor HOME is set"), "give a directory with --dir")
		}
		f.dir = filepath.Join(f.dir, "witness")
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: level}))
	follow := &follower{dir: f.dir, given: f.logs, log: log, told: map[string]string{}}
	logs, err := follow.known()
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		return &exit{exitUnreadable, err, "give another directory with --dir"}
	case err != nil:
		return usage(err, "give a verifier key, NAME+HASH+BASE64, or the address of a room")
	}
	house, err := openHouse(f.dir, f.name)
	if err != nil {
		return err
	}
	defer func() { _ = house.store.Close() }() // only lets go of the lock
	w := witness.New(house.key, house.store, time.Now, log)
	w.Follow(logs)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.addr)
	if err != nil {
		return &exit{exitUnreadable, err, "give another address with --addr"}
	}
	_, err = fmt.Fprintf(t.out, "witness %s\nkey     %s\naddress %s\n", w.Key().Name(), w.Key(), reached(listener.Addr(), f.prefix))
	if err != nil {
		return errors.Join(unreadable(err), listener.Close())
	}
	follow.count(len(logs))
	return f.serve(ctx, w, listener, follow, log)
}

// reached says where a witness can be asked. To listen on all addresses is to
// have none that others could use: then it is the name every machine has.
func reached(at net.Addr, prefix string) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d%s, and under every name of this machine", tcp.Port, prefix)
	}
	return fmt.Sprintf("http://%v%s", at, prefix)
}

// serve answers until the context is done, and then those who ask already.
func (f *witnessFlags) serve(ctx context.Context, w *witness.Witness, listener net.Listener, follow *follower, log *slog.Logger) error {
	server := &http.Server{
		Handler:           w.Handler(f.prefix),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    1 << 14,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	group.Go(func() { follow.keep(ctx, w) })
	failed := make(chan error, 1)
	group.Go(func() { failed <- server.Serve(listener) })
	select {
	case err := <-failed:
		return unreadable(err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	timed, done := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer done()
	if err := server.Shutdown(timed); err != nil {
		log.Warn("requests were cut off", "error", err)
		_ = server.Close() // what is left is cut off
	}
	return nil
}
