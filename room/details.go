package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/queueit"
)

// details are what a room has besides its transcript: title, settings, and the texts of the messages that the
// transcript has as hashes. It is safe for concurrent use.
type details struct {
	room    uuid.UUID
	store   detailStore
	changed func() // called when readers need a new snapshot
	// overQuota reports whether a quota of the organization stops visitors from joining; nil: there is none.
	overQuota func() bool

	title    atomic.Pointer[string]
	settings atomic.Pointer[storedSettings]
	message  atomic.Pointer[storedMessage] // the latest that this node read
}

// detailStore stores the details of rooms.
type detailStore interface {
	SetTitle(ctx context.Context, room uuid.UUID, title string) error
	Settings(ctx context.Context, room uuid.UUID) (pgroom.Settings, error)
	MergeSettings(ctx context.Context, room uuid.UUID, change []byte) (pgroom.Settings, error)
	AddMessage(ctx context.Context, room uuid.UUID, text string) ([32]byte, error)
	Message(ctx context.Context, room uuid.UUID, hash [32]byte) (string, error)
}

// storedSettings are the settings as read from the database.
type storedSettings struct {
	Settings
	queueIt queueit.Stored
	version int64
}

// newDetails returns the details of a room with a title and no settings.
func newDetails(room uuid.UUID, store detailStore, title string, changed func()) *details {
	d := &details{room: room, store: store, changed: changed}
	d.title.Store(&title)
	d.settings.Store(&storedSettings{})
	return d
}

// Title returns the room's title.
func (d *details) Title() string { return *d.title.Load() }

// Settings returns the room's settings, which are immutable: a change creates new ones with a higher version.
func (d *details) Settings() (settings *Settings, version int64) {
	s := d.settings.Load()
	return &s.Settings, s.version
}

// QueueIt returns the room's queue-it configuration.
func (d *details) QueueIt() *queueit.Stored { return &d.settings.Load().queueIt }

// IsFull reports whether the organizer's limit, or a quota of the organization, stops visitors from joining.
func (d *details) IsFull(n fairness.Counts) bool {
	settings, _ := d.Settings()
	return d.overQuota != nil && d.overQuota() ||
		settings.MaxWaiting > 0 && n.Unsettled() >= uint64(settings.MaxWaiting)
}

// Change stores a title (nil: unchanged) and a change of the settings, and applies them.
func (d *details) Change(ctx context.Context, title *string, c SettingsChange) error {
	if title != nil {
		if err := d.store.SetTitle(ctx, d.room, *title); err != nil {
			return err
		}
		if was := d.title.Swap(title); *was != *title {
			d.changed()
		}
	}
	if c == (SettingsChange{}) {
		return nil
	}
	if c.Brand != nil {
		brand := c.Brand.Stored()
		c.Brand = &brand
	}
	return d.Merge(ctx, c)
}

// First stores the settings of a new room.
func (d *details) First(ctx context.Context, s Settings) error {
	if reflect.ValueOf(s).IsZero() {
		return nil
	}
	s.Brand = s.Brand.Stored()
	return d.Merge(ctx, s)
}

// Merge stores members of the settings and applies the result.
func (d *details) Merge(ctx context.Context, members any) error {
	change, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	stored, err := d.store.MergeSettings(ctx, d.room, change)
	if err != nil {
		return err
	}
	return d.take(stored)
}

// earlier is what a node knew of a room's details before it read the room's record; nil: nothing.
type earlier struct{ title *string }

// Known returns what this node currently knows.
func (d *details) Known() earlier { return earlier{d.title.Load()} }

// Take applies the record of the room, which another node may have changed. A title that this node has changed
// since before the record was read stays.
func (d *details) Take(ctx context.Context, before earlier, record *pgroom.Room) error {
	title := record.Title
	if before.title != nil && *before.title != title && d.title.CompareAndSwap(before.title, &title) {
		d.changed()
	}
	return d.ReadVersion(ctx, record.SettingsVersion)
}

// ReadVersion reads the settings from the database if version is newer than the known one.
func (d *details) ReadVersion(ctx context.Context, version int64) error {
	if version <= d.settings.Load().version {
		return nil
	}
	return d.Reread(ctx)
}

// Reread reads the settings from the database, even if the known version is current.
func (d *details) Reread(ctx context.Context) error {
	stored, err := d.store.Settings(ctx, d.room)
	if err != nil || stored.Version == 0 {
		return err
	}
	return d.take(stored)
}

// take applies stored settings, unless newer ones are known.
func (d *details) take(stored pgroom.Settings) error {
	next := &storedSettings{version: stored.Version}
	if err := errors.Join(json.Unmarshal(stored.JSON, &next.Settings),
		json.Unmarshal(stored.JSON, &next.queueIt)); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	for {
		known := d.settings.Load()
		if known.version >= next.version || d.settings.CompareAndSwap(known, next) {
			return nil
		}
	}
}

// AddMessage stores the text of a message, and returns its hash.
func (d *details) AddMessage(ctx context.Context, m Message) ([fairness.HashSize]byte, error) {
	return d.store.AddMessage(ctx, d.room, m.Canonical())
}

// storedMessage is a message with its hash.
type storedMessage struct {
	hash [fairness.HashSize]byte
	Message
}

// messageTimeout limits how long reading a message may delay the room.
const messageTimeout = 2 * time.Second

// Message returns the message whose hash is in the transcript; nil: none. It reads each message only
// once.
func (d *details) Message(ctx context.Context, hash [fairness.HashSize]byte) (*Message, error) {
	if hash == [fairness.HashSize]byte{} {
		return nil, nil //nolint:nilnil // no message
	}
	if m := d.message.Load(); m != nil && m.hash == hash {
		return &m.Message, nil
	}
	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	text, err := d.store.Message(ctx, d.room, hash)
	if err != nil {
		return nil, err
	}
	m := &storedMessage{hash: hash}
	if err := json.Unmarshal([]byte(text), &m.Message); err != nil {
		return nil, fmt.Errorf("read message: %w", err)
	}
	d.message.Store(m)
	return &m.Message, nil
}
