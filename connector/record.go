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
	recordLongest = 30 * 24 * time.Hour // after its end an opening is not reported any more
	maxRecord     = 4 << 20             // bytes
	maxExact      = 1<<53 - 1           // a number that every reader of JSON can hold
	recordVersion = 1
)

// errRecord is returned for a file that is none of ours.
var errRecord = errors.New("this is not a file that a connector keeps")

// recordFile is the file [Options.State]. An opening that goes on is in it as one
// that ended when it was written: should the process end, nobody is let through
// from then on.
type recordFile struct {
	Version  int               `json:"version"`
	Openings []recordedOpening `json:"openings"`
	Gates    []recordedGate    `json:"gates,omitempty"`
}

type recordedOpening struct {
	Room string `json:"room"`
	openingReport
}

// remembered is what is in the file.
type remembered struct {
	openings []pastOpening
	gates    []keptGate
}

// record writes the file. The zero value does nothing.
type record struct {
	gates recalledGates
	file  string
	bell  chan struct{} // something has changed that must not be lost

	text []byte       // of the file, as it was written last; the one who writes it alone uses it
	told atomic.Int64 // when the log said that it cannot be written, in ms since 1970
}

// parseRecord reads the file, but for what is too old. Error: errRecord.
func parseRecord(text []byte, now time.Time) (remembered, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all recordFile
	if err := d.Decode(&all); err != nil {
		return remembered{}, fmt.Errorf("%w: %w", errRecord, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || all.Version != recordVersion || len(all.Openings) > maxPast || len(all.Gates) > maxGates {
		return remembered{}, fmt.Errorf("%w, version %d", errRecord, recordVersion)
	}
	openings, err := all.openings(now)
	if err != nil {
		return remembered{}, err
	}
	gates, err := all.gates(now)
	if err != nil {
		return remembered{}, err
	}
	return remembered{openings, gates}, nil
}

func (all *recordFile) openings(now time.Time) (list []pastOpening, err error) {
	for _, o := range all.Openings {
		id, ok := parseID(o.ID)
		if !ok || !isSafe(o.Room) || o.From < 1 || o.From >= o.Until || o.Until > maxExact || o.Requests > maxExact {
			return nil, fmt.Errorf("%w: opening %.40q", errRecord, o.ID)
		}
		if until := time.UnixMilli(o.Until); now.Sub(until) < recordLongest {
			list = append(list, pastOpening{o.Room, Opening{From: time.UnixMilli(o.From), Until: until, Let: o.Requests, id: id}})
		}
	}
	return list, nil
}

// formatRecord is the file.
func formatRecord(k remembered) []byte {
	all := recordFile{Version: recordVersion, Openings: []recordedOpening{}}
	for _, o := range k.openings {
		all.Openings = append(all.Openings, recordedOpening{o.room, openingsOf([]Opening{o.Opening})[0]})
	}
	for _, g := range k.gates {
		all.Gates = append(all.Gates, recordGate(g))
	}
	text, _ := json.Marshal(all) // texts and numbers always can be
	return append(text, '\n')
}

// recall has the openings reported that were not when the process before ended,
// and goes on by the gates that it knew of.
func (c *Connector) recall() {
	c.record = record{file: c.options.State, bell: make(chan struct{}, 1)}
	if c.options.State == "" || c.options.Token == "" {
		c.record.file = "" // nobody is told
		return
	}
	before, err := readRecord(c.options.State, c.options.Now())
	if err != nil {
		c.options.Log.Error("the unguarded times and gates that were kept are not used", "err", err)
		c.record.text = formatRecord(remembered{}) // it stays until there is something else to keep
	}
	for _, o := range before.openings {
		c.past.add(o)
	}
	c.record.gates.have(before.gates)
	if n := len(before.openings); n > 0 {
		c.options.Log.Warn("unguarded times of before the start are reported", "times", n)
	}
}

// readRecord reads the file; nothing if it is not there.
func readRecord(file string, now time.Time) (remembered, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return remembered{}, nil
	}
	if err != nil {
		return remembered{}, fmt.Errorf("read what was kept: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return remembered{}, fmt.Errorf("read what was kept: %w", err)
	}
	before, err := parseRecord(text, now)
	if err != nil {
		return remembered{}, fmt.Errorf("read what was kept from %s: %w", file, err)
	}
	return before, nil
}

// keepRecords writes what changes, and that an opening still goes on, until ctx
// ends.
func (c *Connector) keepRecords(ctx context.Context) {
	tick := time.NewTicker(c.options.batchAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.record.bell:
		}
		c.keepRecord()
	}
}

// keepRecord writes the openings that the server has not recorded, and the gates
// that are open, if they are others than before.
func (c *Connector) keepRecord() {
	if c.record.file == "" {
		return
	}
	text := formatRecord(remembered{c.unrecorded(), c.openGates()})
	if bytes.Equal(text, c.record.text) {
		return
	}
	if err := replaceFile(c.record.file, text); err != nil {
		if isTime(&c.record.told, c.options.Now()) {
			c.options.Log.Error("unguarded times and gates do not survive a restart, for they cannot be kept", "file", c.record.file, "err", err)
		}
		return
	}
	c.record.text = text
}

// unrecorded returns the openings that the server has not recorded, with those
// that go on as if they ended now.
func (c *Connector) unrecorded() []pastOpening {
	now := c.options.Now()
	var goOn []pastOpening
	for _, l := range c.current.Load().links {
		l.mu.Lock()
		if n := len(l.openings); n > 0 && l.openings[n-1].Until.IsZero() {
			o := l.openings[n-1]
			o.Until = now
			goOn = append(goOn, pastOpening{l.url, o})
		}
		l.mu.Unlock()
	}
	list := c.past.all()
	for _, o := range goOn { // one may have ended meanwhile
		if !slices.ContainsFunc(list, func(p pastOpening) bool { return p.id == o.id }) {
			list = append(list, o)
		}
	}
	return list
}

// closeOpenings ends the openings that go on, so that the last report has them.
func (c *Connector) closeOpenings() {
	for _, l := range c.current.Load().links {
		l.mu.Lock()
		c.shut(l, c.options.Now(), "the connector ends while everybody is let through")
		l.mu.Unlock()
	}
}
