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
	// reloadInterval is the time between reads of the logs file, and between attempts to get the keys
	// of rooms that could not be reached.
	reloadInterval = 10 * time.Second
	// shutdownTimeout is the time that requests have to finish when the program stops.
	shutdownTimeout = 10 * time.Second
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
cosigns a newer one only with a proof that no earlier entry was rewritten. A
room that shows two histories gets no cosignature for the second, and the
witness keeps both checkpoints as evidence.

The first run creates a key and prints the public key: give it to the operator
of the room, with the address under which this program can be reached. The
witness keeps its state in the directory; never restore an older copy of it.

Name rooms with --log, or in the file "logs" in the directory, one per line: the
verifier key of a room, or its address, from which the key is read once and then
pinned. Changes to the file take effect within seconds.

The witness can follow any log that supports https://c2sp.org/tlog-witness.`,
		Example: `  proofline-verify witness --name example.org/witness --addr :8091 \
    --log https://queue.example.com/r/sale`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), t) },
	}
	c.Flags().StringVar(&f.name, "name", "", "`NAME` of the witness, a URL without scheme; required the first time")
	c.Flags().StringVar(&f.dir, "dir", "",
		"keep key and state in this `DIR` (default: $XDG_STATE_HOME/proofline-verify/witness)")
	c.Flags().StringVar(&f.addr, "addr", "localhost:8091", "`HOST:PORT` to listen on, for HTTP without TLS")
	c.Flags().StringVar(&f.prefix, "prefix", "", "`PATH` below which to serve, such as /witness")
	c.Flags().StringArrayVar(&f.logs, "log", nil,
		"log to follow, a `KEY|URL`: its verifier key, or the address of a room; may be repeated")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "log every request")
	return c
}

// prefixes matches the path prefixes that a witness can be served under.
var prefixes = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)

func (f *witnessFlags) run(ctx context.Context, t *terminal) error {
	if !prefixes.MatchString(f.prefix) {
		return usage(fmt.Errorf("--prefix: %q is not a path", f.prefix), "give a path such as /witness")
	}
	if f.dir == "" {
		f.dir = stateDir(t.env)
		if f.dir == "" {
			return usage(errors.New("cannot store the key: neither XDG_STATE_HOME nor HOME is set"),
				"give a directory with --dir")
		}
		f.dir = filepath.Join(f.dir, "witness")
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: level}))
	follow := &follower{dir: f.dir, given: f.logs, log: log, logged: map[string]string{}}
	logs, err := follow.known()
	var unread *fs.PathError
	switch {
	case errors.As(err, &unread):
		return &exit{exitUnreadable, err, "give another directory with --dir"}
	case err != nil:
		return usage(err, "give a verifier key, NAME+HASH+BASE64, or the address of a room")
	}
	witnessDir, err := openWitnessDir(f.dir, f.name)
	if err != nil {
		return err
	}
	defer func() { _ = witnessDir.store.Close() }() // only releases the lock
	w := witness.New(witnessDir.key, witnessDir.store, time.Now, log)
	w.Follow(logs)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.addr)
	if err != nil {
		return &exit{exitUnreadable, err, "give another address with --addr"}
	}
	_, err = fmt.Fprintf(t.out, "witness %s\nkey     %s\naddress %s\n", w.Key().Name(), w.Key(),
		reached(listener.Addr(), f.prefix))
	if err != nil {
		return errors.Join(unreadable(err), listener.Close())
	}
	follow.count(len(logs))
	return f.serve(ctx, w, listener, follow, log)
}

// reached returns the address at which clients can reach a witness. If it listens on all addresses,
// that is localhost.
func reached(at net.Addr, prefix string) string {
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://localhost:%d%s, and under every name of this machine", tcp.Port, prefix)
	}
	return fmt.Sprintf("http://%v%s", at, prefix)
}

// serve answers requests until ctx is done, and then finishes open requests.
func (f *witnessFlags) serve(ctx context.Context, w *witness.Witness, listener net.Listener, follow *follower,
	log *slog.Logger) error {
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
	timed, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer done()
	if err := server.Shutdown(timed); err != nil {
		log.Warn("cut off requests at shutdown", "error", err)
		_ = server.Close() // cuts off remaining requests
	}
	return nil
}
