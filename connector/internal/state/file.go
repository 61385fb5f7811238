// Package state keeps in a file what a connector must know after a restart: fail-open intervals that the server
// has not recorded, and the gates that were open.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/proofline/proofline/connector/internal/address"
	"github.com/proofline/proofline/connector/internal/background"
	"github.com/proofline/proofline/connector/internal/gate"
	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/replace"
)

// MaxFailOpenAge is the maximum age of fail-open intervals, counted from their end. Older ones are not reported.
const MaxFailOpenAge = 30 * 24 * time.Hour

// Limits of the state file.
const (
	maxFailOpen = 1_000
	maxGates    = 1_000
	maxSize     = 4 << 20   // bytes
	maxExact    = 1<<53 - 1 // largest integer exact in every JSON reader
	version     = 1
)

// errFormat is returned for a file that is not a state file.
var errFormat = errors.New("not a state file of a connector")

// State is the content of a state file.
type State struct {
	FailOpen []reach.Past
	Gates    []gate.Saved
}

// fileJSON is the state file. A fail-open interval that is still open is stored as
// ending now: if the process dies, no more requests are admitted.
type fileJSON struct {
	Version  int            `json:"version"`
	FailOpen []failOpenJSON `json:"fail_open"`
	Gates    []gateJSON     `json:"gates,omitempty"`
}

type failOpenJSON struct {
	Room string `json:"room"`
	reach.Report
}

// gateJSON is an open gate.
type gateJSON struct {
	Room      string `json:"room"`
	At        int64  `json:"at"` // ms since 1970
	PerMinute int    `json:"per_minute"`
	MaxActive int    `json:"max_active"`
	Nodes     int    `json:"nodes"`
	SessionMS int64  `json:"session_ms"`
}

// Parse parses the file, and drops entries that are too old. Error: errFormat.
func Parse(text []byte, now time.Time) (s State, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all fileJSON
	if err := d.Decode(&all); err != nil {
		return State{}, fmt.Errorf("%w: %w", errFormat, err)
	}
	_, err = d.Token()
	isTooLong := len(all.FailOpen) > maxFailOpen || len(all.Gates) > maxGates
	if !errors.Is(err, io.EOF) || all.Version != version || isTooLong {
		return State{}, fmt.Errorf("%w, version %d", errFormat, version)
	}
	if s.FailOpen, err = all.failOpen(now); err != nil {
		return State{}, err
	}
	if s.Gates, err = all.gates(now); err != nil {
		return State{}, err
	}
	return s, nil
}

func (all *fileJSON) failOpen(now time.Time) (list []reach.Past, err error) {
	for _, o := range all.FailOpen {
		parsed, ok := id.Parse(o.ID)
		isValid := address.IsSafe(o.Room) && o.From >= 1 && o.From < o.Until && o.Until <= maxExact &&
			o.Requests <= maxExact
		if !ok || !isValid {
			return nil, fmt.Errorf("%w: fail-open interval %.40q", errFormat, o.ID)
		}
		if until := time.UnixMilli(o.Until); now.Sub(until) < MaxFailOpenAge {
			past := reach.Interval{ID: parsed, From: time.UnixMilli(o.From), Until: until, Requests: o.Requests}
			list = append(list, reach.Past{Room: o.Room, Interval: past})
		}
	}
	return list, nil
}

// gates parses the gates in the file, and drops those too old or in the future.
func (all *fileJSON) gates(now time.Time) (list []gate.Saved, err error) {
	for _, g := range all.Gates {
		reply := gate.Reply{
			IsOpen: true, PerMinute: g.PerMinute, MaxActive: g.MaxActive, Nodes: max(g.Nodes, 1), Length: g.SessionMS,
		}
		if !reply.IsValid() || !address.IsSafe(g.Room) || g.At < 1 || g.At > maxExact {
			return nil, fmt.Errorf("%w: gate of %.100q", errFormat, g.Room)
		}
		if s := (gate.Saved{Room: g.Room, At: time.UnixMilli(g.At), Reply: reply}); s.IsFresh(now) {
			list = append(list, s)
		}
	}
	return list, nil
}

// Format formats the file.
func Format(s State) []byte {
	all := fileJSON{Version: version, FailOpen: []failOpenJSON{}}
	for _, o := range s.FailOpen {
		all.FailOpen = append(all.FailOpen, failOpenJSON{o.Room, o.Report()})
	}
	for _, g := range s.Gates {
		all.Gates = append(all.Gates, gateJSON{
			g.Room, g.At.UnixMilli(), g.PerMinute, g.MaxActive, g.Nodes, g.Length,
		})
	}
	text, _ := json.Marshal(all) // cannot fail: strings and numbers only
	return append(text, '\n')
}

// File is the state file of one process.
type File struct {
	name string
	log  *slog.Logger
	now  func() time.Time

	text   []byte // content as last written
	failed background.LogLimit
}

// Open loads a state file, which need not exist.
func Open(name string, log *slog.Logger, now func() time.Time) (*File, State) {
	f := &File{name: name, log: log, now: now}
	s, err := read(name, now())
	if err != nil {
		log.Error("cannot load the state file", "err", err)
		f.text = Format(State{}) // do not overwrite the file before there is something to save
	}
	if n := len(s.FailOpen); n > 0 {
		log.Warn("reporting fail-open intervals from before the start", "times", n)
	}
	return f, s
}

// read reads the file; empty if it does not exist.
func read(name string, now time.Time) (State, error) {
	f, err := os.Open(name) //nolint:gosec // the owner names the file
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read state: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSize))
	if err != nil {
		return State{}, fmt.Errorf("read state: %w", err)
	}
	s, err := Parse(text, now)
	if err != nil {
		return State{}, fmt.Errorf("read state from %s: %w", name, err)
	}
	return s, nil
}

// Save writes the state file if it has changed. Calls must not overlap.
func (f *File) Save(s State) {
	text := Format(s)
	if bytes.Equal(text, f.text) {
		return
	}
	if err := replace.File(f.name, text); err != nil {
		if f.failed.Allow(f.now()) {
			f.log.Error("cannot write the state file: fail-open intervals and gates will not survive a restart",
				"file", f.name, "err", err)
		}
		return
	}
	f.text = text
}
