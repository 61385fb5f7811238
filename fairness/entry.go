package fairness

import (
	"encoding/hex"
	"strconv"
)

// MaxEntrySize is the most bytes an entry's text may have, the limit of a
// C2SP entry bundle.
const MaxEntrySize = 65535

// Sizes of the binary fields in entries, in bytes.
const (
	HashSize  = 32 // SHA-256
	ProofSize = 81 // VRF proof pi, RFC 9381 section 5.5
	BetaSize  = 32 // VRF output
)

// Entry is one line of the transcript: one of *Room, *Arrive, *Merit,
// *Freeze, *Draw, *Assign, *Call, *Admit, *Skip, *Amend, *End.
type Entry interface {
	// Kind is the first word of the entry.
	Kind() Kind
	// AppendEntry appends the canonical text, without a final newline.
	AppendEntry(dst []byte) []byte

	apply(s *State, outside Outside) error
}

// Kind is the first word of an entry.
type Kind string

// The kinds of entries.
const (
	KindRoom   Kind = "room"
	KindArrive Kind = "arrive"
	KindMerit  Kind = "merit"
	KindFreeze Kind = "freeze"
	KindDraw   Kind = "draw"
	KindAssign Kind = "assign"
	KindCall   Kind = "call"
	KindAdmit  Kind = "admit"
	KindSkip   Kind = "skip"
	KindAmend  Kind = "amend"
	KindEnd    Kind = "end"
)

// Room opens the transcript with the policy.
type Room struct{ Policy }

// Arrive records a request to join.
type Arrive struct {
	Time   Time
	Window WindowIndex
	Seq    uint32 // from 0 in the window
	Ticket Ticket
	Lane   Lane
}

// Merit gives an arrival another lot. It has a place in the grammar, and
// [State.Apply] refuses it in this version of the rules.
type Merit struct {
	Time     Time
	Ticket   Ticket
	Method   string
	Evidence string
}

// Freeze closes a window and fixes its arrivals before the randomness of its
// draw exists.
type Freeze struct {
	Time   Time
	Window WindowIndex
	Lots   uint32         // lots in the window's drum
	Size   uint64         // entries before this one
	Root   [HashSize]byte // Merkle root of the entries before this one
	Round  uint64         // beacon round of the draw, 0 without a beacon
	Proof  [ProofSize]byte
}

// Draw reveals the seed of a frozen window.
type Draw struct {
	Time      Time
	Window    WindowIndex
	Signature []byte // of the beacon round, empty without a beacon
	Seed      Seed
}

// Assign states the place of one ticket.
type Assign struct {
	Window   WindowIndex
	Lane     Lane
	Position Position
	Ticket   Ticket
}

// Call moves the serving pointer of a lane up to a position.
type Call struct {
	Time Time
	Lane Lane
	UpTo Position
}

// Admit records that a called ticket claimed its pass.
type Admit struct {
	Time   Time
	Ticket Ticket
	Pass   PassID
}

// Reason says why a ticket was passed over.
type Reason string

// The reasons of a skip.
const (
	NoShow  Reason = "no-show" // called, and not claimed in time
	Left    Reason = "left"    // the visitor gave the place up
	Revoked Reason = "revoked" // the organizer took the place away
)

// Skip passes a ticket over. Nothing is deleted and nothing drawn again.
type Skip struct {
	Time   Time
	Ticket Ticket
	Reason Reason
}

// Change names what an amendment changes.
type Change string

// The changes an amendment can make.
const (
	ChangeOutflow Change = "outflow"
	ChangePause   Change = "pause"
	ChangeResume  Change = "resume"
	ChangeMessage Change = "message"
	ChangeWindows Change = "windows"
)

// Amend changes what may change while a room lives. The fields beside Time
// and Change belong to one change each.
type Amend struct {
	Time    Time
	Change  Change
	Outflow Outflow        // outflow
	Message [HashSize]byte // message: SHA-256 of the text shown to visitors
	Closes  Time           // windows
	Windows []WindowRule   // windows: hold from the first one's moment on
}

// End is the last entry of a room.
type End struct{ Time Time }

// Kind returns "room".
func (*Room) Kind() Kind { return KindRoom }

// Kind returns "arrive".
func (*Arrive) Kind() Kind { return KindArrive }

// Kind returns "merit".
func (*Merit) Kind() Kind { return KindMerit }

// Kind returns "freeze".
func (*Freeze) Kind() Kind { return KindFreeze }

// Kind returns "draw".
func (*Draw) Kind() Kind { return KindDraw }

// Kind returns "assign".
func (*Assign) Kind() Kind { return KindAssign }

// Kind returns "call".
func (*Call) Kind() Kind { return KindCall }

// Kind returns "admit".
func (*Admit) Kind() Kind { return KindAdmit }

// Kind returns "skip".
func (*Skip) Kind() Kind { return KindSkip }

// Kind returns "amend".
func (*Amend) Kind() Kind { return KindAmend }

// Kind returns "end".
func (*End) Kind() Kind { return KindEnd }

// AppendEntry appends the canonical text: one rule of the policy a line.
func (e *Room) AppendEntry(dst []byte) []byte {
	dst = append(dst, "room 1"...)
	line := func(word string) { dst = append(append(dst, '\n'), word...) }
	line("created")
	dst = appendNumber(dst, e.Created)
	line("origin")
	dst = appendWord(dst, e.Origin)
	line("log")
	dst = appendWord(dst, e.LogKey)
	line("vrf")
	dst = appendWord(dst, VRFSuite)
	dst = appendHex(dst, e.VRFKey[:])
	line("beacon")
	dst = appendWord(dst, e.Beacon)
	for _, lane := range e.Lanes {
		line("lane")
		dst = appendWord(dst, lane)
	}
	line("opens")
	dst = appendNumber(dst, e.Opens)
	line("starts")
	dst = appendNumber(dst, e.Starts)
	line("closes")
	dst = appendCloses(dst, e.Closes)
	for _, w := range e.Windows {
		line("window")
		dst = appendRule(dst, w)
	}
	line("outflow")
	dst = appendOutflow(dst, e.Outflow)
	line("claim")
	dst = appendNumber(dst, e.Claim)
	line("session")
	return appendNumber(dst, e.Session)
}

// AppendEntry appends "arrive time window seq ticket lane".
func (e *Arrive) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindArrive...), e.Time)
	dst = appendNumber(dst, e.Window)
	dst = appendNumber(dst, e.Seq)
	dst = appendID(dst, e.Ticket)
	return appendWord(dst, e.Lane)
}

// AppendEntry appends "merit time ticket method evidence".
func (e *Merit) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindMerit...), e.Time)
	dst = appendID(dst, e.Ticket)
	dst = appendWord(dst, e.Method)
	return appendWord(dst, e.Evidence)
}

// AppendEntry appends "freeze time window lots size root round proof".
func (e *Freeze) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindFreeze...), e.Time)
	dst = appendNumber(dst, e.Window)
	dst = appendNumber(dst, e.Lots)
	dst = appendNumber(dst, e.Size)
	dst = appendHex(dst, e.Root[:])
	dst = appendNumber(dst, e.Round)
	return appendHex(dst, e.Proof[:])
}

// AppendEntry appends "draw time window signature seed", with "-" for no
// signature.
func (e *Draw) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindDraw...), e.Time)
	dst = appendNumber(dst, e.Window)
	if len(e.Signature) == 0 {
		dst = append(dst, " -"...)
	} else {
		dst = appendHex(dst, e.Signature)
	}
	return appendHex(dst, e.Seed[:])
}

// AppendEntry appends "assign window lane position ticket".
func (e *Assign) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindAssign...), e.Window)
	dst = appendWord(dst, e.Lane)
	dst = appendNumber(dst, e.Position)
	return appendID(dst, e.Ticket)
}

// AppendEntry appends "call time lane position".
func (e *Call) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindCall...), e.Time)
	dst = appendWord(dst, e.Lane)
	return appendNumber(dst, e.UpTo)
}

// AppendEntry appends "admit time ticket pass".
func (e *Admit) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindAdmit...), e.Time)
	dst = appendID(dst, e.Ticket)
	return appendID(dst, e.Pass)
}

// AppendEntry appends "skip time ticket reason".
func (e *Skip) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindSkip...), e.Time)
	dst = appendID(dst, e.Ticket)
	return appendWord(dst, e.Reason)
}

// AppendEntry appends "amend time change" and what the change carries.
func (e *Amend) AppendEntry(dst []byte) []byte {
	dst = appendNumber(append(dst, KindAmend...), e.Time)
	dst = appendWord(dst, e.Change)
	switch e.Change {
	case ChangeOutflow:
		dst = appendOutflow(dst, e.Outflow)
	case ChangeMessage:
		dst = appendHex(dst, e.Message[:])
	case ChangeWindows:
		dst = appendCloses(dst, e.Closes)
		for _, w := range e.Windows {
			dst = appendRule(dst, w)
		}
	}
	return dst
}

// AppendEntry appends "end time".
func (e *End) AppendEntry(dst []byte) []byte {
	return appendNumber(append(dst, KindEnd...), e.Time)
}

// The append functions below write one field with the space before it.

func appendNumber[N ~int64 | ~uint64 | ~uint32](dst []byte, n N) []byte {
	return strconv.AppendUint(append(dst, ' '), uint64(n), 10)
}

func appendWord[S ~string](dst []byte, s S) []byte { return append(append(dst, ' '), s...) }

func appendHex(dst, b []byte) []byte { return hex.AppendEncode(append(dst, ' '), b) }

func appendID[ID ~[16]byte](dst []byte, id ID) []byte { return appendUUID(append(dst, ' '), id) }

func appendCloses(dst []byte, t Time) []byte {
	if t == Never {
		return append(dst, " never"...)
	}
	return appendNumber(dst, t)
}

func appendRule(dst []byte, r WindowRule) []byte {
	return appendNumber(appendNumber(dst, r.From), r.Length)
}

func appendOutflow(dst []byte, o Outflow) []byte {
	return appendNumber(appendNumber(dst, o.PerMinute), o.MaxActive)
}
