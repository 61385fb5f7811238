package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Reloading is something that a command reads from files, and can read again while it runs.
type Reloading struct {
	Name string // for the log
	// Reload reads and uses the files. If it returns an error, what was read before stays in use.
	Reload func(context.Context) error
}

// Hangups returns the SIGHUPs that the program gets from now on, for [Reload]. In a terminal there are none: commands
// end when it is closed.
func (t *Terminal) Hangups() <-chan os.Signal {
	if t.Interactive(t.In) {
		return nil
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}

// Reload reads everything again on each SIGHUP until ctx ends, and logs what it has read.
func Reload(ctx context.Context, hangups <-chan os.Signal, log *slog.Logger, all []Reloading) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
			reload(ctx, log, all)
		}
	}
}

func reload(ctx context.Context, log *slog.Logger, all []Reloading) {
	var done []string
	for _, one := range all {
		if err := one.Reload(ctx); err != nil {
			log.Error("cannot reload: what was read before stays in use", "what", one.Name, "err", err)
			continue
		}
		done = append(done, one.Name)
	}
	switch {
	case len(all) == 0:
		log.Info("nothing to reload: the other files and settings need a restart")
	case len(done) > 0:
		log.Info("reloaded", "what", strings.Join(done, ", "))
	}
}
