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

// Bounds of the file.
const (
	maxFailOpenAge = 30 * 24 * time.Hour // after its end an opening is not reported any more
	maxStateSize   = 4 << 20             // bytes
	maxExact       = 1<<53 - 1           // a number that every reader of JSON can hold
	stateVersion   = 1
)

// errRecord is returned for a file that is none of ours.
var errStateFile = errors.New("this is not a file that a connector keeps")

// recordFile is the file [Options.State]. An opening that goes on is in it as one
// that ended when it was written: should the process end, nobody is let through
// from then on.
type stateFile struct {
	Version  int              `json:"version"`
	Openings []failOpenRecord `json:"openings"`
	Gates    []gateRecord     `json:"gates,omitempty"`
}

type failOpenRecord struct {
	Room string `json:"room"`
	failOpenReport
}

// remembered is what is in the file.
type savedState struct {
	failOpen []pastFailOpen
	gates    []savedGate
}

// record writes the file. The zero value does nothing.
type stateWriter struct {
	gates   savedGates
	file    string
	changed chan struct{} // something has changed that must not be lost

	text   []byte       // of the file, as it was written last; the one who writes it alone uses it
	logged atomic.Int64 // when the log said that it cannot be written, in ms since 1970
}

// parseRecord reads the file, but for what is too old. Error: errRecord.
func parseState(text []byte, now time.Time) (savedState, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all stateFile
	if err := d.Decode(&all); err != nil {
		return savedState{}, fmt.Errorf("%w: %w", errStateFile, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || all.Version != stateVersion || len(all.Openings) > maxUnrecorded || len(all.Gates) > maxGates {
		return savedState{}, fmt.Errorf("%w, version %d", errStateFile, stateVersion)
	}
	openings, err := all.failOpen(now)
	if err != nil {
		return savedState{}, err
	}
	gates, err := all.gates(now)
	if err != nil {
		return savedState{}, err
	}
	return savedState{openings, gates}, nil
}

func (all *stateFile) failOpen(now time.Time) (list []pastFailOpen, err error) {
	for _, o := range all.Openings {
		id, ok := parseID(o.ID)
		if !ok || !isSafe(o.Room) || o.From < 1 || o.From >= o.Until || o.Until > maxExact || o.Requests > maxExact {
			return nil, fmt.Errorf("%w: opening %.40q", errStateFile, o.ID)
		}
		if until := time.UnixMilli(o.Until); now.Sub(until) < maxFailOpenAge {
			list = append(list, pastFailOpen{o.Room, FailOpen{From: time.UnixMilli(o.From), Until: until, Requests: o.Requests, id: id}})
		}
	}
	return list, nil
}

// formatRecord is the file.
func formatState(k savedState) []byte {
	all := stateFile{Version: stateVersion, Openings: []failOpenRecord{}}
	for _, o := range k.failOpen {
		all.Openings = append(all.Openings, failOpenRecord{o.room, failOpenReports([]FailOpen{o.FailOpen})[0]})
	}
	for _, g := range k.gates {
		all.Gates = append(all.Gates, newGateRecord(g))
	}
	text, _ := json.Marshal(all) // texts and numbers always can be
	return append(text, '\n')
}

// recall has the openings reported that were not when the process before ended,
// and goes on by the gates that it knew of.
func (c *Connector) loadState() {
	c.saved = stateWriter{file: c.options.State, changed: make(chan struct{}, 1)}
	if c.options.State == "" || c.options.Token == "" {
		c.saved.file = "" // nobody is told
		return
	}
	before, err := readState(c.options.State, c.options.Now())
	if err != nil {
		c.options.Log.Error("the unguarded times and gates that were kept are not used", "err", err)
		c.saved.text = formatState(savedState{}) // it stays until there is something else to keep
	}
	for _, o := range before.failOpen {
		c.unrecorded.add(o)
	}
	c.saved.gates.set(before.gates)
	if n := len(before.failOpen); n > 0 {
		c.options.Log.Warn("unguarded times of before the start are reported", "times", n)
	}
}

// readRecord reads the file; nothing if it is not there.
func readState(file string, now time.Time) (savedState, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return savedState{}, nil
	}
	if err != nil {
		return savedState{}, fmt.Errorf("read what was kept: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxStateSize))
	if err != nil {
		return savedState{}, fmt.Errorf("read what was kept: %w", err)
	}
	before, err := parseState(text, now)
	if err != nil {
		return savedState{}, fmt.Errorf("read what was kept from %s: %w", file, err)
	}
	return before, nil
}

// keepRecords writes what changes, and that an opening still goes on, until ctx
// ends.
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

// keepRecord writes the openings that the server has not recorded, and the gates
// that are open, if they are others than before.
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
			c.options.Log.Error("unguarded times and gates do not survive a restart, for they cannot be kept", "file", c.saved.file, "err", err)
		}
		return
	}
	c.saved.text = text
}

// unrecorded returns the openings that the server has not recorded, with those
// that go on as if they ended now.
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
	for _, o := range goOn { // one may have ended meanwhile
		if !slices.ContainsFunc(list, func(p pastFailOpen) bool { return p.id == o.id }) {
			list = append(list, o)
		}
	}
	return list
}

// closeOpenings ends the openings that go on, so that the last report has them.
func (c *Connector) endAllFailOpen() {
	for _, st := range c.current.Load().states {
		st.mu.Lock()
		c.endFailOpen(st, c.options.Now(), "the connector ends while everybody is let through")
		st.mu.Unlock()
	}
}
