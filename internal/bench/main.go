// Command bench measures the product's performance on real servers and a real PostgreSQL, and
// prints each result with its target. Server speeds are ratios to a bare Echo handler that returns
// the same bytes to the same generator in the same run, because machines differ and are noisy.
//
//	go run ./internal/bench [-visitors 1000000] [-only joins,reads,dashboard,connector,window,replay,audit,page,polls,check]
//
// It exits with status 1 if a target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	what, measured, promise string
	kept                    bool
}

// bench is one run.
type bench struct {
	ctx      context.Context
	dir      string // temporary, removed at the end
	bin      string // directory of the binaries under test
	visitors int
	rows     []row
}

func main() {
	if serve := helper(os.Args[1:]); serve != nil {
		if err := serve(); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	visitors := flag.Int("visitors", 1_000_000, "visitors of the large rooms")
	only := flag.String("only", "joins,reads,dashboard,connector,window,replay,audit,page,polls,check",
		"what to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kept, err := run(ctx, *visitors, strings.Split(*only, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if !kept {
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

func run(ctx context.Context, visitors int, only []string) (kept bool, err error) {
	dir, err := os.MkdirTemp("", "proofline-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL's own user passes through
		return false, err
	}
	b := &bench{ctx: ctx, dir: dir, bin: dir, visitors: visitors}
	if err := b.build(); err != nil {
		return false, err
	}
	steps := map[string]func() error{"joins": b.joins, "reads": b.reads, "dashboard": b.dashboard,
		"connector": b.connector, "window": b.window, "replay": b.replay, "audit": b.audit, "page": b.firstLoad,
		"polls": b.polls, "check": b.check}
	for _, name := range only {
		step, ok := steps[name]
		if !ok {
			return false, fmt.Errorf("unknown measurement %q", name)
		}
		b.say("measuring %s", name)
		if err := step(); err != nil {
			return false, fmt.Errorf("measure %s: %w", name, err)
		}
	}
	return b.table(), nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+" ...\n", args...) }

// add adds a result.
func (b *bench) add(kept bool, what, measured, promise string) {
	b.rows = append(b.rows, row{what, measured, promise, kept})
	b.say("  %s: %s (%s)", what, measured, promise)
}

// table prints all results and reports whether every target was met.
func (b *bench) table() bool {
	kept := true
	fmt.Printf("\n%s, %d cores, %s, %s\n\n", machine(), runtime.NumCPU(), runtime.GOARCH, runtime.Version())
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tmeasured\tpromise\t")
	for _, r := range b.rows {
		verdict := "kept"
		if !r.kept {
			verdict, kept = "NOT KEPT", false
		}
		if r.promise == "" {
			verdict = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, r.measured, r.promise, verdict)
	}
	_ = w.Flush() // standard output
	return kept
}

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
