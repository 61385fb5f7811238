package connector

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// Limits of the state file.
const (
	maxFailOpenAge = 30 * 24 * time.Hour // since the end; older intervals are not reported
	maxStateSize   = 4 << 20             // bytes
	maxExact       = 1<<53 - 1           // largest integer exact in every JSON reader
	stateVersion   = 1
)

// errStateFile is returned for a file that is not a state file.
var errStateFile = errors.New("not a state file of a connector")

// stateFile is the content of [Options.State]. A fail-open interval that is still
// open is stored as ending now: if the process dies, no more requests are admitted.
type stateFile struct {
	Version  int              `json:"version"`
	FailOpen []failOpenRecord `json:"fail_open"`
	Gates    []gateRecord     `json:"gates,omitempty"`
}

type failOpenRecord struct {
	Room string `json:"room"`
	failOpenReport
}

// savedState is the parsed state file.
type savedState struct {
	failOpen []pastFailOpen
	gates    []savedGate
}

// stateWriter writes the state file. The zero value does nothing.
type stateWriter struct {
	gates   savedGates
	file    string
	changed chan struct{} // signals a change to be written at once

	text   []byte       // content as last written; used by the writing goroutine alone
	logged atomic.Int64 // last log line about a failed write, ms since 1970
}

// parseState parses the file, without entries that are too old. Error: errStateFile.
func parseState(text []byte, now time.Time) (savedState, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all stateFile
	if err := d.Decode(&all); err != nil {
		return savedState{}, fmt.Errorf("%w: %w", errStateFile, err)
	}
	_, err := d.Token()
	isTooLong := len(all.FailOpen) > maxUnrecorded || len(all.Gates) > maxGates
	if !errors.Is(err, io.EOF) || all.Version != stateVersion || isTooLong {
		return savedState{}, fmt.Errorf("%w, version %d", errStateFile, stateVersion)
	}
	failOpen, err := all.failOpen(now)
	if err != nil {
		return savedState{}, err
	}
	gates, err := all.gates(now)
	if err != nil {
		return savedState{}, err
	}
	return savedState{failOpen, gates}, nil
}

func (all *stateFile) failOpen(now time.Time) (list []pastFailOpen, err error) {
	for _, o := range all.FailOpen {
		id, ok := parseID(o.ID)
		if !ok || !isSafe(o.Room) || o.From < 1 || o.From >= o.Until || o.Until > maxExact || o.Requests > maxExact {
			return nil, fmt.Errorf("%w: fail-open interval %.40q", errStateFile, o.ID)
		}
		if until := time.UnixMilli(o.Until); now.Sub(until) < maxFailOpenAge {
			past := FailOpen{From: time.UnixMilli(o.From), Until: until, Requests: o.Requests, id: id}
			list = append(list, pastFailOpen{o.Room, past})
		}
	}
	return list, nil
}

// formatState formats the file.
func formatState(k savedState) []byte {
	all := stateFile{Version: stateVersion, FailOpen: []failOpenRecord{}}
	for _, o := range k.failOpen {
		all.FailOpen = append(all.FailOpen, failOpenRecord{o.room, failOpenReports([]FailOpen{o.FailOpen})[0]})
	}
	for _, g := range k.gates {
		all.Gates = append(all.Gates, newGateRecord(g))
	}
	text, _ := json.Marshal(all) // cannot fail: strings and numbers only
	return append(text, '\n')
}

// loadState loads the state file: fail-open intervals still to be reported, and
// the last known open gates.
func (c *Connector) loadState() {
	c.saved = stateWriter{file: c.options.State, changed: make(chan struct{}, 1)}
	if c.options.State == "" || c.options.Token == "" {
		c.saved.file = "" // nothing is reported
		return
	}
	before, err := readState(c.options.State, c.options.Now())
	if err != nil {
		c.options.Log.Error("cannot load the state file", "err", err)
		c.saved.text = formatState(savedState{}) // do not overwrite the file before there is something to save
	}
	for _, o := range before.failOpen {
		c.unrecorded.add(o)
	}
	c.saved.gates.set(before.gates)
	if n := len(before.failOpen); n > 0 {
		c.options.Log.Warn("reporting fail-open intervals from before the start", "times", n)
	}
}

// readState reads the file; empty if it does not exist.
func readState(file string, now time.Time) (savedState, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return savedState{}, nil
	}
	if err != nil {
		return savedState{}, fmt.Errorf("read state: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStateSize))
	if err != nil {
		return savedState{}, fmt.Errorf("read state: %w", err)
	}
	before, err := parseState(text, now)
	if err != nil {
		return savedState{}, fmt.Errorf("read state from %s: %w", file, err)
	}
	return before, nil
}

// saveChanges saves the state until ctx ends: on every tick, because the end of an
// open interval moves, and when signaled.
func (c *Connector) saveChanges(ctx context.Context) {
	tick := time.NewTicker(c.options.batchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.saved.changed:
		}
		c.saveState()
	}
}

// saveState writes the state file if it has changed.
func (c *Connector) saveState() {
	if c.saved.file == "" {
		return
	}
	text := formatState(savedState{c.unrecordedFailOpen(), c.gatesToSave()})
	if bytes.Equal(text, c.saved.text) {
		return
	}
	if err := replaceFile(c.saved.file, text); err != nil {
		if mayLog(&c.saved.logged, c.options.Now()) {
			c.options.Log.Error("cannot write the state file: fail-open intervals and gates will not survive a restart",
				"file", c.saved.file, "err", err)
		}
		return
	}
	c.saved.text = text
}

// unrecordedFailOpen returns the fail-open intervals that the server has not
// recorded, including those still open, as if they ended now.
func (c *Connector) unrecordedFailOpen() []pastFailOpen {
	now := c.options.Now()
	var goOn []pastFailOpen
	for _, st := range c.current.Load().states {
		st.mu.Lock()
		if n := len(st.failOpen); n > 0 && st.failOpen[n-1].Until.IsZero() {
			o := st.failOpen[n-1]
			o.Until = now
			goOn = append(goOn, pastFailOpen{st.url, o})
		}
		st.mu.Unlock()
	}
	list := c.unrecorded.all()
	for _, o := range goOn { // one may have ended in the meantime
		if !slices.ContainsFunc(list, func(p pastFailOpen) bool { return p.id == o.id }) {
			list = append(list, o)
		}
	}
	return list
}

// endAllFailOpen ends the open intervals, so that the last report includes them.
func (c *Connector) endAllFailOpen() {
	for _, st := range c.current.Load().states {
		st.mu.Lock()
		c.endFailOpen(st, c.options.Now(), "connector is shutting down during a fail-open interval")
		st.mu.Unlock()
	}
}
