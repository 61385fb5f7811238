package fairness

import (
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/proofline/proofline/fairness/beacon"
)

// MaxEntrySize is the maximum size of an entry in bytes, which is the limit of a C2SP entry bundle.
const MaxEntrySize = 65535

// Sizes of the binary fields in entries, in bytes.
const (
	HashSize  = 32 // SHA-256
	ProofSize = 81 // VRF proof pi, RFC 9381 section 5.5
	BetaSize  = 32 // VRF output
	CosigSize = 76 // cosignature, C2SP tlog-cosignature: key id, time, Ed25519
)

// Entry is one line of the transcript: one of *Room, *Arrive, *Merit,
// *Freeze, *Draw, *Assign, *Call, *Admit, *Skip, *Amend, *Beat, *End.
type Entry interface {
	// Kind is the first word of the entry.
	Kind() Kind
	// AppendEntry appends the canonical text, without a final newline.
	AppendEntry(dst []byte) []byte

	moment(s *State) Time // entry time; s.Now for an entry without one
	apply(s *State, oracle Oracle) error
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
	KindBeat   Kind = "beat"
	KindEnd    Kind = "end"
)

// Room opens the transcript with the policy.
type Room struct{ Policy }

// Arrive records a request to join.
type Arrive struct {
	Time   Time
	Window WindowIndex
	Seq    uint32 // number in the window, from 0
	Ticket Ticket
	Lane   Lane
	Seats  uint32 // of a party; 0: one
}

// Merit gives an arrival another lot. The grammar allows it, but [State.Apply] refuses it in this
// version of the rules.
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
	Lots   []uint32       // lots in the window's drums: one for each lane
	Size   uint64         // entries before this one
	Root   [HashSize]byte // Merkle root of the entries before this one
	Round  uint64         // beacon round of the draw, 0 without a beacon
	Proof  [ProofSize]byte
}

// Total returns the number of lots in all drums.
func (e *Freeze) Total() (n uint64) {
	for _, lots := range e.Lots {
		n += uint64(lots)
	}
	return n
}

// Draw reveals the seed of a frozen window.
type Draw struct {
	Time      Time
	Window    WindowIndex
	Signature []byte // signature of the beacon round, empty without a beacon
	Seed      Seed
	// Cosignatures sign the checkpoint that ends with the freeze, in the order of the policy's
	// witnesses.
	Cosignatures []Cosignature
}

// Cosignature is a witness's signature of a checkpoint at a time.
type Cosignature [CosigSize]byte

// Assign publishes the place of one ticket.
type Assign struct {
	Window   WindowIndex
	Lane     Lane
	Position Position
	Ticket   Ticket
}

// Call moves the serving pointers of the lanes up to positions.
type Call struct {
	Time Time
	UpTo []Position // by lane, in the order of the policy
}

// Places returns the number of places of all lanes that are called by now.
func (e *Call) Places() (n Position) {
	for _, p := range e.UpTo {
		n += p
	}
	return n
}

// Admit records that a called ticket claimed its pass.
type Admit struct {
	Time   Time
	Ticket Ticket
	Pass   PassID
}

// Reason says why a ticket was passed over.
type Reason string

// The reasons of a skip. Those that begin with "revoked" are the organizer's decision to take the
// place away. The rest of the word gives the organizer's reason, which nothing verifies.
const (
	NoShow           Reason = "no-show"   // called, but not claimed in time
	Left             Reason = "left"      // the visitor gave the place up
	TooLarge         Reason = "too-large" // a party that wants more seats than are left
	Revoked          Reason = "revoked"   // no more specific reason was given
	RevokedBot       Reason = "revoked-bot"
	RevokedDuplicate Reason = "revoked-duplicate" // one of several places held by one person
	RevokedFraud     Reason = "revoked-fraud"
	RevokedRequest   Reason = "revoked-request" // the visitor asked for it
)

// IsRevoked reports whether the organizer took the place away.
func (r Reason) IsRevoked() bool { return slices.Index(reasons[:], r) >= int(revoked) }

// Skip passes a ticket over. Nothing is deleted or drawn again.
type Skip struct {
	Time   Time
	Ticket Ticket
	Reason Reason
}

// Change names what an amendment changes.
type Change string

// The changes an amendment can make.
const (
	ChangeOutflow   Change = "outflow"
	ChangePause     Change = "pause"
	ChangeResume    Change = "resume"
	ChangeMessage   Change = "message"
	ChangeWindows   Change = "windows"
	ChangeOpen      Change = "open"      // from now on the site admits visitors who are not in line
	ChangeShut      Change = "shut"      // from now on the site admits only visitors in line
	ChangeSeats     Change = "seats"     // how many seats there are
	ChangeUnguarded Change = "unguarded" // a connector could not reach the room and admitted all requests
)

// claimsToo is the last word of a pause that stops claims as well as calls.
const claimsToo = "claims"

// Amend changes one of the amendable settings of a room, or records a fact about its site. Each
// field except Time and Change is used by one change.
type Amend struct {
	Time        Time
	Change      Change
	Outflow     Outflow        // outflow
	Claims      bool           // pause: also stop claims of called visitors
	Message     [HashSize]byte // message: SHA-256 of its canonical form, zero for none
	Seats       uint32         // seats
	Closes      Time           // windows
	Windows     []WindowRule   // windows: in force from the first one's From
	From, Until Time           // unguarded
	Requests    uint64         // unguarded: number of requests admitted
}

// Beat shows that the room was running at a time, and so lets the claim clock advance.
type Beat struct{ Time Time }

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

// Kind returns "beat".
func (*Beat) Kind() Kind { return KindBeat }

// Kind returns "end".
func (*End) Kind() Kind { return KindEnd }

func (e *Room) moment(*State) Time     { return e.Created }
func (e *Arrive) moment(*State) Time   { return e.Time }
func (e *Merit) moment(*State) Time    { return e.Time }
func (e *Freeze) moment(*State) Time   { return e.Time }
func (e *Draw) moment(*State) Time     { return e.Time }
func (e *Assign) moment(s *State) Time { return s.now }
func (e *Call) moment(*State) Time     { return e.Time }
func (e *Admit) moment(*State) Time    { return e.Time }
func (e *Skip) moment(*State) Time     { return e.Time }
func (e *Amend) moment(*State) Time    { return e.Time }
func (e *Beat) moment(*State) Time     { return e.Time }
func (e *End) moment(*State) Time      { return e.Time }

// AppendEntry appends the canonical text, one policy rule per line.
func (e *Room) AppendEntry(dst []byte) []byte {
	w := begin(dst, KindRoom).number(1).
		line("created").time(e.Created).
		line("origin").word(e.Origin).
		line("log").word(e.LogKey).
		line("vrf").word(VRFSuite).hex(e.VRFKey[:]).
		line("beacon").beacon(e.Beacon)
	if len(e.Witnesses) > 0 {
		w = w.line("witnesses").number(uint64(e.Quorum))
	}
	for _, key := range e.Witnesses {
		w = w.line("witness").word(key)
	}
	for _, lane := range e.Lanes {
		w = w.line("lane").word(string(lane.Name)).number(uint64(lane.Weight))
	}
	if e.Party > 0 {
		w = w.line("party").number(uint64(e.Party))
	}
	if e.Seats > 0 {
		w = w.line("seats").number(uint64(e.Seats))
	}
	w = w.line("opens").time(e.Opens).line("starts").time(e.Starts).line("closes").closes(e.Closes)
	for _, r := range e.Windows {
		w = w.line("window").rule(r)
	}
	return w.line("notice").number(uint64(e.Notice)).
		line("outflow").outflow(e.Outflow).
		line("claim").number(uint64(e.Claim)).
		line("grace").number(uint64(e.Grace)).
		line("session").number(uint64(e.Session))
}

// AppendEntry appends "arrive time window seq ticket lane", and the seats of a party.
func (e *Arrive) AppendEntry(dst []byte) []byte {
	w := begin(dst, KindArrive).time(e.Time).number(uint64(e.Window)).number(uint64(e.Seq)).
		id(e.Ticket).word(string(e.Lane))
	if e.Seats > 0 {
		w = w.number(uint64(e.Seats))
	}
	return w
}

// AppendEntry appends "merit time ticket method evidence".
func (e *Merit) AppendEntry(dst []byte) []byte {
	return begin(dst, KindMerit).time(e.Time).id(e.Ticket).word(e.Method).word(e.Evidence)
}

// AppendEntry appends "freeze time window lots size root round proof", with commas between lots.
func (e *Freeze) AppendEntry(dst []byte) []byte {
	return begin(dst, KindFreeze).time(e.Time).number(uint64(e.Window)).lots(e.Lots).
		number(e.Size).hex(e.Root[:]).number(e.Round).hex(e.Proof[:])
}

// AppendEntry appends "draw time window signature seed cosignature...", with
// "-" for no signature.
func (e *Draw) AppendEntry(dst []byte) []byte {
	w := begin(dst, KindDraw).time(e.Time).number(uint64(e.Window))
	if len(e.Signature) == 0 {
		w = w.word("-")
	} else {
		w = w.hex(e.Signature)
	}
	w = w.hex(e.Seed[:])
	for i := range e.Cosignatures {
		w = w.hex(e.Cosignatures[i][:])
	}
	return w
}

// AppendEntry appends "assign window lane position ticket".
func (e *Assign) AppendEntry(dst []byte) []byte {
	return begin(dst, KindAssign).number(uint64(e.Window)).word(string(e.Lane)).
		number(uint64(e.Position)).id(e.Ticket)
}

// AppendEntry appends "call time position...", with one position for each lane.
func (e *Call) AppendEntry(dst []byte) []byte {
	w := begin(dst, KindCall).time(e.Time)
	for _, p := range e.UpTo {
		w = w.number(uint64(p))
	}
	return w
}

// AppendEntry appends "admit time ticket pass".
func (e *Admit) AppendEntry(dst []byte) []byte {
	return begin(dst, KindAdmit).time(e.Time).id(e.Ticket).id(e.Pass)
}

// AppendEntry appends "skip time ticket reason".
func (e *Skip) AppendEntry(dst []byte) []byte {
	return begin(dst, KindSkip).time(e.Time).id(e.Ticket).word(string(e.Reason))
}

// AppendEntry appends "amend time change" and the fields of that change.
func (e *Amend) AppendEntry(dst []byte) []byte {
	w := begin(dst, KindAmend).time(e.Time).word(string(e.Change))
	switch e.Change {
	case ChangeOutflow:
		w = w.outflow(e.Outflow)
	case ChangePause:
		if e.Claims {
			w = w.word(claimsToo)
		}
	case ChangeMessage:
		w = w.hex(e.Message[:])
	case ChangeWindows:
		w = w.closes(e.Closes)
		for _, r := range e.Windows {
			w = w.rule(r)
		}
	case ChangeSeats:
		w = w.number(uint64(e.Seats))
	case ChangeUnguarded:
		w = w.time(e.From).time(e.Until).number(e.Requests)
	case ChangeResume, ChangeOpen, ChangeShut:
	}
	return w
}

// AppendEntry appends "beat time".
func (e *Beat) AppendEntry(dst []byte) []byte { return begin(dst, KindBeat).time(e.Time) }

// AppendEntry appends "end time".
func (e *End) AppendEntry(dst []byte) []byte { return begin(dst, KindEnd).time(e.Time) }

// writer builds the text of an entry; it is the counterpart of [fields]. Each method appends one
// field and the space before it; line appends the first word of a new line.
type writer []byte

func begin(dst []byte, k Kind) writer { return append(dst, k...) }

func (w writer) line(word string) writer  { return append(append(w, '\n'), word...) }
func (w writer) word(s string) writer     { return append(append(w, ' '), s...) }
func (w writer) number(n uint64) writer   { return strconv.AppendUint(append(w, ' '), n, 10) }
func (w writer) time(t Time) writer       { return w.number(uint64(t)) }
func (w writer) hex(b []byte) writer      { return hex.AppendEncode(append(w, ' '), b) }
func (w writer) id(id [16]byte) writer    { return appendUUID(append(w, ' '), id) }
func (w writer) rule(r WindowRule) writer { return w.time(r.From).number(uint64(r.Length)) }
func (w writer) outflow(o Outflow) writer {
	return w.number(uint64(o.PerMinute)).number(uint64(o.MaxActive))
}

func (w writer) lots(lots []uint32) writer {
	for i, n := range lots {
		if i > 0 {
			w = strconv.AppendUint(append(w, ','), uint64(n), 10)
			continue
		}
		w = w.number(uint64(n))
	}
	return w
}

func (w writer) beacon(b *Beacon) writer {
	if b == nil {
		return w.word(NoBeacon)
	}
	return w.word(beacon.Scheme).word(b.ID).hex(b.PublicKey[:]).number(uint64(b.Genesis)).number(uint64(b.Period)).
		hex(b.GroupHash[:]).number(uint64(b.Margin))
}

func (w writer) closes(t Time) writer {
	if t == Never {
		return w.word("never")
	}
	return w.time(t)
}
