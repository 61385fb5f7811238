// Command drill shows what a highly available Proofline survives: it starts etcd, three PostgreSQL
// servers under Patroni, two nodes and HAProxy on this machine, with the configuration files of
// deploy/patroni, sends visitors who join and claim, and breaks one part after the other. For each
// drill it prints what visitors were promised and what became of it.
//
//	go run ./internal/drill [flags] [NAME...]
//
// Without names it runs all drills. It exits with status 1 if a promise was broken. It runs as root,
// which it needs to start PostgreSQL as the user postgres, or as any other user.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// drill is something that breaks, by name.
type drill struct {
	name, about string
	run         func(s *stage) error
	// extra is how much longer than the database joins may pause besides the usual second.
	extra time.Duration
}

var drills = []drill{
	{name: "switchover", about: "Patroni hands the database to a standby", run: (*stage).switchover},
	{name: "crash", about: "the primary's postmaster is killed", run: (*stage).crash},
	{name: "pause", about: "the primary's machine stands still and comes back", run: (*stage).pause},
	{name: "node", about: "a node is killed, and started again", run: (*stage).node},
	{name: "partition", about: "the network between a node and the database is cut", run: (*stage).partition,
		extra: 3 * time.Second}, // a silent node may hold the lock of a room for about 2.75 s
	{name: "standby", about: "the synchronous standby stands still", run: (*stage).standby},
	{name: "standbys", about: "all standbys stand still: nothing may be confirmed", run: (*stage).standbys},
	{name: "restore", about: "the database is restored to an earlier time, and recovered", run: (*stage).restore},
	{name: "rolling", about: "the nodes are replaced one after the other", run: (*stage).rolling},
}

// options are the flags.
type options struct {
	rate   float64
	etcds  int
	route  string
	bin    string
	old    string
	update bool
	keep   bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	kept, err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
	}
	if err != nil || !kept {
		os.Exit(1)
	}
}

// parse reads the flags and names, in any order.
func parse(args []string) (o options, chosen []drill, err error) {
	flags := flag.NewFlagSet("drill", flag.ContinueOnError)
	flags.Float64Var(&o.rate, "rate", 300, "joins per second; of four visitors, one claims")
	flags.IntVar(&o.etcds, "etcd", 1, "members of etcd, 1 or 3")
	flags.StringVar(&o.route, "route", "haproxy", "how nodes find the primary: `haproxy`, or hosts: they try all servers")
	flags.StringVar(&o.bin, "bin", "bin", "`directory` of proofline and proofline-verify")
	flags.StringVar(&o.old, "old", "", "`file` of the proofline that rolling replaces (default the same program)")
	flags.BoolVar(&o.update, "update", false, "write the table to "+document)
	flags.BoolVar(&o.keep, "keep", false, "keep the directory with logs and data")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: drill [flags] [NAME...]\n\n")
		for _, d := range drills {
			fmt.Fprintf(flags.Output(), "  %-11s %s\n", d.name, d.about)
		}
		fmt.Fprintln(flags.Output())
		flags.PrintDefaults()
	}
	var names []string
	for {
		if err := flags.Parse(args); err != nil {
			return o, nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		names, args = append(names, flags.Arg(0)), flags.Args()[1:]
	}
	switch {
	case o.rate <= 0:
		return o, nil, errors.New("-rate must be positive")
	case o.etcds != 1 && o.etcds != 3:
		return o, nil, errors.New("-etcd must be 1 or 3")
	case o.route != "haproxy" && o.route != "hosts":
		return o, nil, fmt.Errorf("-route is %q, and must be haproxy or hosts", o.route)
	}
	for _, name := range names {
		if !slices.ContainsFunc(drills, func(d drill) bool { return d.name == name }) {
			return o, nil, fmt.Errorf("there is no drill %q: -h lists them", name)
		}
	}
	for _, d := range drills {
		if len(names) == 0 || slices.Contains(names, d.name) {
			chosen = append(chosen, d)
		}
	}
	return o, chosen, nil
}

func run(ctx context.Context, args []string) (kept bool, err error) {
	o, chosen, err := parse(args)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "proofline-drill-")
	if err != nil {
		return false, err
	}
	if o.keep {
		say("logs and data are kept in %s", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own user passes through
		return false, err
	}
	s := &stage{ctx: ctx, options: o, dir: dir}
	defer s.close()
	if err := s.open(); err != nil {
		return false, fmt.Errorf("%w%s", err, s.logs())
	}
	var rows []row
	for i, d := range chosen {
		say("%d of %d: %s, %s", i+1, len(chosen), d.name, d.about)
		r, err := s.perform(d)
		if err != nil {
			printTable(os.Stdout, rows)
			return false, fmt.Errorf("%s: %w%s", d.name, err, s.logs())
		}
		rows = append(rows, r)
		say("  %s", r.summary())
	}
	printTable(os.Stdout, rows)
	if o.update {
		if err := updateDocument(o, rows); err != nil {
			return false, err
		}
	}
	return !slices.ContainsFunc(rows, func(r row) bool { return len(r.broken()) > 0 }), nil
}

// logs returns the ends of all logs, to explain an error.
func (s *stage) logs() string {
	if s.ctx.Err() != nil {
		return ""
	}
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(s.dir, "logs", "*")) // the pattern is well formed
	for _, file := range files {
		text, _ := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		lines = lines[max(0, len(lines)-8):]
		fmt.Fprintf(&b, "\n--- %s\n%s", filepath.Base(file), strings.Join(lines, "\n"))
	}
	return b.String()
}

// say prints progress.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
