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
	"time"
)

// Bounds of the file of openings.
const (
	recordLongest = 30 * 24 * time.Hour // after its end an opening is not reported any more
	maxRecord     = 4 << 20             // bytes
	maxExact      = 1<<53 - 1           // a number that every reader of JSON can hold
	recordVersion = 1
)

// errRecord is returned for a file that is not one of openings.
var errRecord = errors.New("this is not a file of unguarded times")

// recordFile is the file [Options.State]. An opening that goes on is in it as one
// that ended when it was written: should the process end, nobody is let through
// from then on.
type recordFile struct {
	Version  int               `json:"version"`
	Openings []recordedOpening `json:"openings"`
}

type recordedOpening struct {
	Room string `json:"room"`
	openingReport
}

// record writes openings to the file. The zero value does nothing.
type record struct {
	file string
	bell chan struct{} // something has changed that must not be lost
	text []byte        // of the file, as it was written last; the one who writes it alone uses it
}

// parseRecord reads the file of openings, but for what is too old. Error: errRecord.
func parseRecord(text []byte, now time.Time) ([]pastOpening, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var all recordFile
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) || all.Version != recordVersion || len(all.Openings) > maxPast {
		return nil, fmt.Errorf("%w, version %d", errRecord, recordVersion)
	}
	var list []pastOpening
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

// formatRecord is the file of openings.
func formatRecord(list []pastOpening) []byte {
	all := recordFile{Version: recordVersion, Openings: []recordedOpening{}}
	for _, o := range list {
		all.Openings = append(all.Openings, recordedOpening{o.room, openingsOf([]Opening{o.Opening})[0]})
	}
	text, _ := json.Marshal(all) // texts and numbers always can be
	return append(text, '\n')
}

// recall has the openings reported that were not when the process before ended.
func (c *Connector) recall() {
	c.record = record{file: c.options.State, bell: make(chan struct{}, 1)}
	if c.options.State == "" || c.options.Token == "" {
		c.record.file = "" // nobody is told
		return
	}
	list, err := readRecord(c.options.State, c.options.Now())
	if err != nil {
		c.options.Log.Error("the unguarded times that were kept are not reported", "err", err)
		c.record.text = formatRecord(nil) // it stays until there is something else to keep
	}
	for _, o := range list {
		c.past.add(o)
	}
	if len(list) > 0 {
		c.options.Log.Warn("unguarded times of before the start are reported", "times", len(list))
	}
	c.keepRecord()
}

// readRecord reads the file of openings; none if it is not there.
func readRecord(file string, now time.Time) ([]pastOpening, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read unguarded times: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return nil, fmt.Errorf("read unguarded times: %w", err)
	}
	list, err := parseRecord(text, now)
	if err != nil {
		return nil, fmt.Errorf("read unguarded times from %s: %w", file, err)
	}
	return list, nil
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

// keepRecord writes the openings that the server has not recorded, if they are
// others than before.
func (c *Connector) keepRecord() {
	if c.record.file == "" {
		return
	}
	text := formatRecord(c.unrecorded())
	if bytes.Equal(text, c.record.text) {
		return
	}
	if err := replaceFile(c.record.file, text); err != nil {
		c.options.Log.Error("unguarded times do not survive a restart", "err", err)
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
