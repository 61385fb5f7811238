// Command bench measures Proofline's performance on real servers and a real PostgreSQL, and prints
// each figure next to its goal. Server speeds are ratios to a bare Echo handler that returns the
// same number of bytes to the same generator in a paired run, because machines differ and are
// noisy. Loads come with the CPU time of a request in the server, in PostgreSQL and in the
// generator, which shares the machine.
//
//	go run ./internal/bench [flags] [NAME...]
//
// Without names it measures everything. It exits with status 1 if a goal is missed. With -base it
// compares the working tree with another commit instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

// bench is one run of the program.
type bench struct {
	ctx      context.Context
	dir      string // temporary directory, removed at the end
	head     version
	base     *version // nil: no comparison
	runs     int
	length   time.Duration // duration of one load
	visitors int           // number of visitors of the large rooms
	restart  int           // visitors of the room that a server starts with
	fleet    *fleet

	results results // results of head
	bases   results // results of base
}

// version is a commit under test.
type version struct {
	name string // "head" or "base", in names of directories
	bin  string // directory of the binaries
}

// measurement is something to measure by name.
type measurement struct {
	name, about string
	// open prepares runs of a version; nil: whole measures instead.
	open func(b *bench, v version) (run func(i int) ([]reading, error), err error)
	// whole measures the working tree. It cannot compare versions.
	whole func(b *bench) error
	slow  bool // the measurement is slow, so there are few runs
}

var measurements = []measurement{
	{"joins", "joins at 64 and 256 connections, of bare Echo", (*bench).joins, nil, false},
	{"latency", "joins at half of the maximum load", (*bench).latency, nil, false},
	{"rooms", "joins in 1,000 rooms, of one room", (*bench).manyRooms, nil, false},
	{"signed", "joins with an issuer's signature, of plain joins", (*bench).signed, nil, false},
	{"state", "state documents, of bare Echo", (*bench).state, nil, false},
	{"ticket", "ticket statuses, of bare Echo", (*bench).tickets, nil, false},
	{"tiles", "what auditors read, without a cache, of bare Echo", (*bench).tiles, nil, false},
	{"memory", "memory of a waiting visitor, and of 1,000 rooms", (*bench).memory, nil, true},
	{"restart", "start of a server with a large room", (*bench).restarts, nil, false},
	{"restart-signed", "the same with an issuer's signature of each visitor", (*bench).restartsSigned, nil, false},
	{"storage", "database and WAL of a visitor's whole life", (*bench).storage, nil, true},
	{"metrics", "scrapes of 1,000 rooms, and what recording costs a join", (*bench).metrics, nil, false},
	{"dashboard", "cost of open dashboards", nil, (*bench).dashboard, false},
	{"connector", "requests through the connector's proxy and middleware", nil, (*bench).connector, false},
	{"window", "draw of a large window", nil, (*bench).window, true},
	{"replay", "replay of the room that window leaves", nil, (*bench).replay, false},
	{"audit", "audits of large rooms", nil, (*bench).audit, true},
	{"audit-signed", "audit of a room whose visitors show an issuer's signature", nil, (*bench).auditSigned, true},
	{"page", "first load of the page of a line", nil, (*bench).firstLoad, false},
	{"polls", "requests of waiting pages", nil, (*bench).polls, false},
	{"check", "check of a place in Chromium", nil, (*bench).check, false},
}

func main() {
	if serve := helper(os.Args[1:]); serve != nil {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kept, err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	if err != nil || !kept {
		os.Exit(1) //nolint:gocritic // stop only frees a signal handler
	}
}

// helper returns the function to run if this program was started as a helper server; nil: it is the
// benchmark.
func helper(args []string) func() error {
	switch {
	case len(args) == 2 && args[0] == "bare":
		return func() error { return serveBare(args[1]) }
	case len(args) == 2 && args[0] == "reverse-proxy":
		return func() error { return serveReverseProxy(args[1]) }
	case len(args) == 1 && args[0] == "site":
		return serveSite
	}
	return nil
}

// parse reads the flags and names, in any order, and returns the commit to compare with.
func (b *bench) parse(args []string) (chosen []measurement, base string, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&b.runs, "runs", 5, "runs of each row; slow measurements make at most 3")
	flags.DurationVar(&b.length, "time", 2*time.Second, "length of one load")
	flags.IntVar(&b.visitors, "visitors", 1_000_000, "visitors of the large rooms")
	flags.IntVar(&b.restart, "restart", 400_000, "visitors in restart (goal: 3000000) and restart-signed (1000000)")
	flags.StringVar(&base, "base", "", "compare the working tree with this `commit`")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: bench [flags] [NAME...]\n\n")
		for _, m := range measurements {
			fmt.Fprintf(flags.Output(), "  %-14s %s\n", m.name, m.about)
		}
		fmt.Fprintln(flags.Output())
		flags.PrintDefaults()
	}
	var names []string
	for {
		if err := flags.Parse(args); err != nil {
			return nil, "", err
		}
		if flags.NArg() == 0 {
			break
		}
		names, args = append(names, flags.Arg(0)), flags.Args()[1:]
	}
	if b.runs < 1 || b.length <= 0 || b.visitors < 1_000 || b.restart < 1_000 {
		return nil, "", errors.New("-runs and -time must be positive, -visitors and -restart at least 1000")
	}
	chosen, err = choose(names, base != "")
	return chosen, base, err
}

// choose returns the named measurements, or all, in the order of the list.
func choose(names []string, comparing bool) (chosen []measurement, err error) {
	var known []string
	for _, m := range measurements {
		if comparing && m.open == nil {
			continue
		}
		known = append(known, m.name)
		if len(names) == 0 || slices.Contains(names, m.name) {
			chosen = append(chosen, m)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			what := "measure"
			if comparing {
				what = "compare commits by"
			}
			return nil, fmt.Errorf("cannot %s %q; the names are %s", what, name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

func run(ctx context.Context, args []string) (kept bool, err error) {
	b := &bench{ctx: ctx}
	chosen, base, err := b.parse(args)
	if err != nil {
		return false, err
	}
	if b.dir, err = os.MkdirTemp("", "proofline-bench-"); err != nil {
		return false, err
	}
	defer os.RemoveAll(b.dir)
	if err := os.Chmod(b.dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own user passes through
		return false, err
	}
	if b.head, b.base, err = build(ctx, b.dir, base); err != nil {
		return false, err
	}
	b.fleet = &fleet{ctx: ctx, dir: b.dir}
	err = b.measureAll(chosen)
	fmt.Printf("\n%s, %d cores, %s, %s\n\n", machine(), runtime.NumCPU(), runtime.GOARCH, runtime.Version())
	if b.base != nil {
		compare(os.Stdout, b.bases, b.results)
		return true, err
	}
	return b.results.print(os.Stdout), err // results from before an error are printed, too
}

func (b *bench) measureAll(chosen []measurement) error {
	runs := b.runs
	for i, m := range chosen {
		if b.runs = runs; m.slow {
			b.runs = min(runs, 3)
		}
		say("%d of %d: %s, %s", i+1, len(chosen), m.name, m.about)
		began := time.Now()
		if err := b.measure(m); err != nil {
			return fmt.Errorf("measure %s: %w", m.name, err)
		}
		say("  took %v", time.Since(began).Round(time.Second))
	}
	return nil
}

// measure makes all runs of a measurement. Two versions take turns, and so does the order in a pair.
func (b *bench) measure(m measurement) error {
	defer b.fleet.stopAll()
	if m.whole != nil {
		return m.whole(b)
	}
	type subject struct {
		version
		results *results
		run     func(i int) ([]reading, error)
	}
	subjects := []subject{{version: b.head, results: &b.results}}
	if b.base != nil {
		subjects = append(subjects, subject{version: *b.base, results: &b.bases})
	}
	for i := range subjects {
		var err error
		if subjects[i].run, err = m.open(b, subjects[i].version); err != nil {
			return fmt.Errorf("%s: %w", subjects[i].name, err)
		}
	}
	for i := range b.runs {
		for _, s := range subjects {
			readings, err := s.run(i)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			for _, r := range readings {
				s.results.add(r)
			}
			say("  run %d of %d, %s: %s", i+1, b.runs, s.name, summary(readings))
		}
		slices.Reverse(subjects)
	}
	return nil
}

// add adds readings of the working tree.
func (b *bench) add(readings ...reading) {
	for _, r := range readings {
		b.results.add(r)
	}
	say("  %s", summary(readings))
}

// summary returns the readings on one line.
func summary(readings []reading) string {
	var parts []string
	for _, r := range readings {
		parts = append(parts, strings.TrimSpace(r.goal.name)+" "+number(r.value)+" "+r.goal.unit)
	}
	return strings.Join(parts, "; ")
}

// say prints progress.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// machine returns the name of the processor.
func machine() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOOS
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.Trim(name, "\t :\n")
		}
	}
	return runtime.GOOS
}
