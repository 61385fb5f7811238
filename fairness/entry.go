package fairness

import (
	"slices"

	"github.com/proofline/proofline/fairness/credential"
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
// *Freeze, *Draw, *Assign, *Call, *Extend, *Restore, *Admit, *Skip, *Amend, *Tell, *Beat, *End.
type Entry interface {
	head() (Kind, Time) // the time of an assign entry has no meaning
	fields(c *codec)
	apply(s *State, oracle Oracle) error
}

// KindOf returns the first word of an entry.
func KindOf(e Entry) Kind {
	kind, _ := e.head()
	return kind
}

// Kind is the first word of an entry.
type Kind string

// The kinds of entries.
const (
	KindRoom    Kind = "room"
	KindArrive  Kind = "arrive"
	KindMerit   Kind = "merit"
	KindFreeze  Kind = "freeze"
	KindDraw    Kind = "draw"
	KindAssign  Kind = "assign"
	KindCall    Kind = "call"
	KindExtend  Kind = "extend"
	KindRestore Kind = "restore"
	KindAdmit   Kind = "admit"
	KindSkip    Kind = "skip"
	KindAmend   Kind = "amend"
	KindTell    Kind = "tell"
	KindBeat    Kind = "beat"
	KindEnd     Kind = "end"
)

// Room opens the transcript with the policy.
type Room struct{ Policy }

// Arrive records a request to join.
type Arrive struct {
	Time   Time
	Window WindowIndex
	Seq    uint32 // number of its first lot in the drum of its slot and lane, from 0
	Ticket Ticket
	Lane   Lane
	Seats  uint32 // of a party; 0: one
	// Credentials are in the order of the policy's methods.
	Credentials []credential.Credential
}

// Merit is a credential that a ticket shows after it has arrived.
type Merit struct {
	Time       Time
	Ticket     Ticket
	Seq        uint32 // number of lots in its drum before, of which the credential may give it one more
	Credential credential.Credential
}

// Freeze closes a window and fixes its arrivals before the randomness of its
// draw exists.
type Freeze struct {
	Time   Time
	Window WindowIndex
	Lots   []uint32       // lots in the window's drums: slot by slot, in each by lane
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

// Extend gives a called ticket more time to be claimed, once, at its visitor's request.
type Extend struct {
	Time   Time
	Ticket Ticket
}

// Restore gives a revoked ticket its place back, once. If the place is passed, it is called at once.
type Restore struct {
	Time   Time
	Ticket Ticket
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
	ChangeOutflow Change = "outflow"
	ChangePause   Change = "pause"
	ChangeResume  Change = "resume"
	ChangeMessage Change = "message"
	ChangeWindows Change = "windows"
	ChangeOpen    Change = "open"  // from now on the site admits visitors who are not in line
	ChangeShut    Change = "shut"  // from now on the site admits only visitors in line
	ChangeSeats   Change = "seats" // how many seats there are
)

// claimsToo is the last word of a pause that stops claims as well as calls.
const claimsToo = "claims"

// Amend changes one of the amendable settings of a room. Each field except Time and Change is used by one change.
type Amend struct {
	Time    Time
	Change  Change
	Outflow Outflow        // outflow
	Claims  bool           // pause: also stop claims of called visitors
	Message [HashSize]byte // message: SHA-256 of its canonical form, zero for none
	Seats   uint32         // seats
	Closes  Time           // windows
	Windows []WindowRule   // windows: in force from the first one's From
}

// Subject names what a statement is about.
type Subject string

// The subjects of a statement.
const (
	TellStock     Subject = "stock"     // how many seats of a category are left
	TellPrice     Subject = "price"     // what the seats of a category cost
	TellRefused   Subject = "refused"   // how many joins were refused, and why
	TellUnguarded Subject = "unguarded" // connectors could not reach the room and admitted all requests
	TellAuto      Subject = "auto"      // why a program makes the amendment of the outflow that comes next
)

// Tell is a statement of the operator. It changes nothing, and nothing verifies it. Each field except Time and
// Subject is used by some subjects.
type Tell struct {
	Time        Time
	Subject     Subject
	Name        Lane   // stock, price: a category; refused, auto: a reason. Spelled like the name of a lane
	From, Until Time   // refused, unguarded
	Count       uint64 // stock: seats left; refused: joins; unguarded: requests admitted without a pass
	Min, Max    uint64 // price: in minor units of the currency
	Currency    string // price: its three letters in ISO 4217
}

// Beat shows that the room was running at a time, and so lets the claim clock advance.
type Beat struct {
	Time      Time
	Signature []byte // of the beacon's round that work is done for ([Policy.WorkRound]), once in a room; or none
}

// End is the last entry of a room.
type End struct{ Time Time }

func (e *Room) head() (Kind, Time)    { return KindRoom, e.Created }
func (e *Arrive) head() (Kind, Time)  { return KindArrive, e.Time }
func (e *Merit) head() (Kind, Time)   { return KindMerit, e.Time }
func (e *Freeze) head() (Kind, Time)  { return KindFreeze, e.Time }
func (e *Draw) head() (Kind, Time)    { return KindDraw, e.Time }
func (e *Assign) head() (Kind, Time)  { return KindAssign, 0 }
func (e *Call) head() (Kind, Time)    { return KindCall, e.Time }
func (e *Extend) head() (Kind, Time)  { return KindExtend, e.Time }
func (e *Restore) head() (Kind, Time) { return KindRestore, e.Time }
func (e *Admit) head() (Kind, Time)   { return KindAdmit, e.Time }
func (e *Skip) head() (Kind, Time)    { return KindSkip, e.Time }
func (e *Amend) head() (Kind, Time)   { return KindAmend, e.Time }
func (e *Tell) head() (Kind, Time)    { return KindTell, e.Time }
func (e *Beat) head() (Kind, Time)    { return KindBeat, e.Time }
func (e *End) head() (Kind, Time)     { return KindEnd, e.Time }

func (e *Room) fields(c *codec) {
	c.fixed("1").
		line("created").time(&e.Created).
		line("origin").token(&e.Origin).
		line("log").token(&e.LogKey).
		line("vrf").fixed(VRFSuite).hex(e.VRFKey[:]).
		line("beacon").beacon(&e.Beacon)
	if c.begins("witnesses", len(e.Witnesses) > 0) {
		c.small(&e.Quorum)
	}
	lines(c, "witness", &e.Witnesses, (*codec).token)
	lines(c, "method", &e.Methods, (*codec).method)
	lines(c, "lane", &e.Lanes, (*codec).laneRule)
	if c.begins("lots", len(e.Lots) > 0) {
		c.names(&e.Lots)
	}
	if c.begins("party", e.Party > 0) {
		c.small(&e.Party)
	}
	if c.begins("seats", e.Seats > 0) {
		c.small(&e.Seats)
	}
	c.line("opens").time(&e.Opens).
		line("starts").time(&e.Starts).
		line("closes").closes(&e.Closes)
	lines(c, "window", &e.Windows, (*codec).rule)
	if c.begins("slots", e.Slots > 0) {
		c.millis(&e.Slots)
	}
	c.line("notice").millis(&e.Notice).
		line("outflow").outflow(&e.Outflow).
		line("claim").millis(&e.Claim)
	if c.begins("extend", e.Extend > 0) {
		c.millis(&e.Extend)
	}
	c.line("grace").millis(&e.Grace).
		line("session").millis(&e.Session)
}

func (e *Arrive) fields(c *codec) {
	c.time(&e.Time).number((*uint64)(&e.Window)).small(&e.Seq).id((*[16]byte)(&e.Ticket)).lane(&e.Lane)
	rest(c, 3, &e.Credentials, (*codec).credential)
	if c.more(1, e.Seats > 0) {
		c.small(&e.Seats)
	}
}

func (e *Merit) fields(c *codec) {
	c.time(&e.Time).id((*[16]byte)(&e.Ticket)).small(&e.Seq).credential(&e.Credential)
}

func (e *Freeze) fields(c *codec) {
	c.time(&e.Time).number((*uint64)(&e.Window)).lots(&e.Lots).number(&e.Size).hex(e.Root[:]).
		number(&e.Round).hex(e.Proof[:])
}

func (e *Draw) fields(c *codec) {
	c.time(&e.Time).number((*uint64)(&e.Window)).signature(&e.Signature).hex(e.Seed[:])
	rest(c, 1, &e.Cosignatures, (*codec).cosignature)
}

func (e *Assign) fields(c *codec) {
	c.number((*uint64)(&e.Window)).lane(&e.Lane).position(&e.Position).id((*[16]byte)(&e.Ticket))
}

func (e *Call) fields(c *codec) {
	rest(c.time(&e.Time), 1, &e.UpTo, (*codec).position)
	if c.reading && (len(e.UpTo) == 0 || len(e.UpTo) > MaxLanes) {
		c.fail("want a position for each lane")
	}
}

func (e *Extend) fields(c *codec) { c.time(&e.Time).id((*[16]byte)(&e.Ticket)) }

func (e *Restore) fields(c *codec) { c.time(&e.Time).id((*[16]byte)(&e.Ticket)) }

func (e *Admit) fields(c *codec) { c.time(&e.Time).id((*[16]byte)(&e.Ticket)).id((*[16]byte)(&e.Pass)) }

func (e *Skip) fields(c *codec) { c.time(&e.Time).id((*[16]byte)(&e.Ticket)).reason(&e.Reason) }

func (e *Amend) fields(c *codec) {
	switch c.time(&e.Time).token((*string)(&e.Change)); e.Change {
	case ChangeResume, ChangeOpen, ChangeShut:
	case ChangePause:
		if c.more(1, e.Claims) {
			e.Claims = true
			c.fixed(claimsToo)
		}
	case ChangeOutflow:
		c.outflow(&e.Outflow)
	case ChangeMessage:
		c.hex(e.Message[:])
	case ChangeWindows:
		rest(c.closes(&e.Closes), 1, &e.Windows, (*codec).rule)
	case ChangeSeats:
		c.small(&e.Seats)
	default:
		c.fail("unknown kind of amendment")
	}
}

func (e *Tell) fields(c *codec) {
	switch c.time(&e.Time).token((*string)(&e.Subject)); e.Subject {
	case TellStock:
		c.lane(&e.Name).number(&e.Count)
	case TellPrice:
		c.lane(&e.Name).number(&e.Min).number(&e.Max).currency(&e.Currency)
	case TellRefused:
		c.lane(&e.Name).time(&e.From).time(&e.Until).number(&e.Count)
	case TellUnguarded:
		c.time(&e.From).time(&e.Until).number(&e.Count)
	case TellAuto:
		c.lane(&e.Name)
	default:
		c.fail("unknown subject of a statement")
	}
}

func (e *Beat) fields(c *codec) {
	if c.time(&e.Time); c.more(1, len(e.Signature) > 0) {
		c.signature(&e.Signature)
	}
}

func (e *End) fields(c *codec) { c.time(&e.Time) }
