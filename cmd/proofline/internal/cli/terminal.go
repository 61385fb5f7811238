// Package cli contains what all commands share: the program's streams, flags from the environment,
// output as tables and JSON, and errors with exit codes.
package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/proofline/proofline/internal/traces"
	"golang.org/x/term"
)

// Terminal holds the program's streams, environment and version.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Version  string
}

// Interactive reports whether a stream is a terminal.
func (t *Terminal) Interactive(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && t.Env("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Printf prints to standard output.
func (t *Terminal) Printf(format string, args ...any) error {
	_, err := fmt.Fprintf(t.Out, format, args...)
	return err
}

// PrintJSON prints a value as indented JSON.
func (t *Terminal) PrintJSON(v any) error {
	e := json.NewEncoder(t.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// PrintTable prints rows in aligned columns.
func (t *Terminal) PrintTable(rows ...[]string) error {
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Printable(cell)
		}
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t")) // Flush returns the error
	}
	return w.Flush()
}

// Printable replaces control characters, which a terminal might obey.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Warn prints a warning.
func (t *Terminal) Warn(text string) {
	_, _ = fmt.Fprintf(t.Err, "proofline: warning: %s\n", text)
}

// Note prints additional information to standard error.
func (t *Terminal) Note(text string) {
	_, _ = fmt.Fprintln(t.Err, Printable(text))
}

// Logger returns a logger that writes to standard error.
func (t *Terminal) Logger(format, level string) (*slog.Logger, error) {
	var options slog.HandlerOptions
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level: %q is not one of debug, info, warn, error", level)
	}
	options.Level = parsed
	switch format {
	case "text":
		return slog.New(traces.Log(slog.NewTextHandler(t.Err, &options))), nil
	case "json":
		return slog.New(traces.Log(slog.NewJSONHandler(t.Err, &options))), nil
	}
	return nil, fmt.Errorf("--log-format: %q is neither text nor json", format)
}

// ReadFile reads at most limit bytes of a file, or of standard input for "-". The error for a file that cannot be
// opened has the hint.
func (t *Terminal) ReadFile(name string, most int64, hint string) ([]byte, error) {
	in := t.In
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the user names it
		if err != nil {
			return nil, Usage(err, hint)
		}
		defer func() { _ = f.Close() }() // only read from
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// Live is a line on standard error that changes in place. It is only shown on a
// terminal.
type Live struct{ w io.Writer }

// Live returns a live line.
func (t *Terminal) Live() Live {
	if t.Interactive(t.Err) {
		return Live{t.Err}
	}
	return Live{io.Discard}
}

// Show changes the line.
func (l Live) Show(format string, args ...any) {
	_, _ = fmt.Fprintf(l.w, "\r\x1b[K"+format, args...)
}

// Clear removes the line.
func (l Live) Clear() { l.Show("") }
