// Package export moves rooms that are over between servers, as files, and their transcripts out of the database, into
// an [Archive] of static files.
//
//	database ─► Write ─► FILE.tar ─► Check ─► Import ─► another database
//
// A file has what the room has published, and nothing else:
//
//	transcript/checkpoint, vkey, tile/...   the transcript, in the layout of proofline-verify fetch
//	rooms/checkpoint, vkey, tile/...        the log of rooms of the server, which has the room and its end
//	room.json                               a [Record]: title, look, messages, the operator's statement
//	room.sig                                names the record and the log of rooms, signed with the key of the transcript
//
// It has no private key, no session, and nothing about people but what the transcript says. Check audits the transcript
// with the code that auditors run, and compares every file with what is signed, so that a file cannot be changed
// without a signature of the room's key. Which server has that key no file can say: the importer compares the key with
// the one that the old server shows. The new server can show the room, and can append nothing to it.
package export

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/proofline/proofline/room"
)

var (
	// ErrNotOver is returned for a room that another entry could follow: two servers must never continue one history.
	ErrNotOver = errors.New("the room is not over")
	// ErrRehearsal is returned for a rehearsal.
	ErrRehearsal = errors.New("the room is a rehearsal: its visitors are synthetic")
	// ErrHeld is returned for a room whose database lacks published entries.
	ErrHeld = errors.New("the room is held: part of its transcript is missing")
	// ErrImported is returned for a room that was imported itself.
	ErrImported = errors.New("the room was imported: only the server that created it can sign an export")
	// ErrFile is returned for a file that is not a whole, unchanged export of a room that is over.
	ErrFile = errors.New("not a valid export of a room")
	// ErrExists is returned when the room is there already.
	ErrExists = errors.New("the room is there already")
	// ErrTaken is returned when another room has the name of the imported one.
	ErrTaken = errors.New("another room has this name")
)

// Files and directories of an export.
const (
	recordPath    = "room.json"
	signaturePath = "room.sig"
	roomsDir      = "rooms/"
)

// maxRecord is the maximum size of the record: logos, texts, and messages.
const maxRecord = 16 << 20

// recordFormat names the format of an export.
const recordFormat = "proofline.dev/room-export/1"

// Record is what a room has published besides its transcript.
type Record struct {
	Format    string        `json:"format"`
	Slug      string        `json:"slug"`
	Title     string        `json:"title"`
	Settings  room.Settings `json:"settings"`            // those of [room.Settings.Published]
	Messages  []string      `json:"messages"`            // texts of the messages in the transcript, in canonical form
	Statement string        `json:"statement,omitempty"` // signed, of a room that ended because entries are lost
}

// signedText returns the text of the signature for a record, with the key of the log of rooms.
func signedText(origin string, record []byte, roomsKey string) string {
	sum := sha256.Sum256(record)
	return fmt.Sprintf("%s\n%s\n%s\n%s\n", recordFormat, origin, base64.StdEncoding.EncodeToString(sum[:]), roomsKey)
}
