package fairness

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/proofline/proofline/fairness/beacon"
)

// ErrGrammar is returned for a text that is not an entry in canonical form.
var ErrGrammar = errors.New("not a canonical entry")

const (
	maxSignature = 256      // bytes of a beacon signature
	maxDrums     = MaxLanes // numbers of lots in a freeze
	maxDigits    = 19       // of a decimal, so that it is below 2^64
)

// Parser reads entries without allocating for the frequent kinds. The zero value is ready to use.
// It is not safe for concurrent use.
type Parser struct {
	fields    fields
	rewritten []byte // the entry as AppendEntry writes it, to compare

	arrive Arrive
	assign Assign
	admit  Admit
	skip   Skip
	call   Call
}

// ParseEntry reads one entry. See [Parser.Parse].
func ParseEntry(text []byte) (Entry, error) { return new(Parser).Parse(text) }

// Parse reads one entry. It accepts only the output of AppendEntry: it writes the entry again and
// compares the bytes. Any other text returns [ErrGrammar]. The entry is valid until the next call;
// text is not retained.
func (p *Parser) Parse(text []byte) (Entry, error) {
	if len(text) > MaxEntrySize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrGrammar, len(text), MaxEntrySize)
	}
	p.fields = fields{rest: text}
	kind := p.fields.text()
	e := p.body(kind)
	if e == nil {
		return nil, fmt.Errorf("%w: unknown kind %.20q", ErrGrammar, kind)
	}
	if p.fields.bad != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrGrammar, kind, p.fields.bad)
	}
	p.rewritten = e.AppendEntry(p.rewritten[:0])
	if !bytes.Equal(p.rewritten, text) {
		return nil, fmt.Errorf("%w: %s: not in canonical form", ErrGrammar, kind)
	}
	return e, nil
}

func (p *Parser) body(kind []byte) Entry {
	f := &p.fields
	switch Kind(kind) {
	case KindArrive:
		p.arrive = Arrive{f.time(), WindowIndex(f.number()), f.number32(), Ticket(f.id()), f.lane(), 0}
		if len(f.rest) > 0 && f.bad == "" {
			p.arrive.Seats = f.number32()
		}
		return &p.arrive
	case KindAssign:
		p.assign = Assign{WindowIndex(f.number()), f.lane(), Position(f.number()), Ticket(f.id())}
		return &p.assign
	case KindAdmit:
		p.admit = Admit{f.time(), Ticket(f.id()), PassID(f.id())}
		return &p.admit
	case KindSkip:
		p.skip = Skip{f.time(), Ticket(f.id()), f.reason()}
		return &p.skip
	case KindCall:
		p.call = Call{f.time(), p.call.UpTo[:0]}
		for len(p.call.UpTo) == 0 || len(f.rest) > 0 && f.bad == "" && len(p.call.UpTo) < MaxLanes {
			p.call.UpTo = append(p.call.UpTo, Position(f.number()))
		}
		return &p.call
	case KindFreeze:
		e := &Freeze{Time: f.time(), Window: WindowIndex(f.number()), Lots: f.lots(), Size: f.number()}
		f.hex(e.Root[:])
		e.Round = f.number()
		f.hex(e.Proof[:])
		return e
	case KindDraw:
		e := &Draw{Time: f.time(), Window: WindowIndex(f.number()), Signature: f.signature()}
		f.hex(e.Seed[:])
		for len(f.rest) > 0 && f.bad == "" {
			var c Cosignature
			f.hex(c[:])
			e.Cosignatures = append(e.Cosignatures, c)
		}
		return e
	case KindMerit:
		return &Merit{f.time(), Ticket(f.id()), f.token(), f.token()}
	case KindAmend:
		return f.amend()
	case KindBeat:
		return &Beat{f.time()}
	case KindEnd:
		return &End{f.time()}
	case KindRoom:
		return f.room()
	}
	return nil
}

// fields reads the space-separated fields of an entry. After the first bad field all others read as
// zero, and bad describes the error.
type fields struct {
	rest []byte
	bad  string
}

func (f *fields) fail(what string) {
	if f.bad == "" {
		f.bad = what
	}
}

// text returns the next field, up to a space or newline. Writing the entry again checks which of
// the two it was.
func (f *fields) text() []byte {
	i := 0
	for i < len(f.rest) && f.rest[i] != ' ' && f.rest[i] != '\n' {
		i++
	}
	return f.first(i)
}

// first returns the next field, given its length.
func (f *fields) first(i int) []byte {
	field := f.rest[:i]
	f.rest = f.rest[min(i+1, len(f.rest)):]
	if len(field) == 0 {
		f.fail("a field is missing")
	}
	return field
}

// token reads a field of printable ASCII.
func (f *fields) token() string {
	s := string(f.text())
	if !isToken(s) {
		f.fail("a field has a character that is not printable ASCII")
	}
	return s
}

// below reads a decimal below a limit.
func (f *fields) below(limit uint64) uint64 {
	n, ok := uint64(0), true
	for i, c := range f.text() {
		n, ok = n*10+uint64(c-'0'), ok && c-'0' < 10 && i < maxDigits
	}
	if !ok || n >= limit {
		f.fail("a number contains a non-digit or is too large")
		return 0
	}
	return n
}

func (f *fields) number() uint64   { return f.below(1 << 63) }
func (f *fields) number32() uint32 { return uint32(f.below(1 << 32)) }
func (f *fields) time() Time       { return Time(f.below(uint64(Never))) }
func (f *fields) millis() Millis   { return Millis(f.below(uint64(Never) + 1)) }

func (f *fields) closes() Time {
	if bytes.HasPrefix(f.rest, []byte("never")) {
		f.text()
		return Never
	}
	return f.time()
}

func (f *fields) id() [16]byte {
	id, ok := parseUUID(f.first(min(uuidLength, len(f.rest))))
	if !ok {
		f.fail("an id is not a lower-case UUID of version 8")
	}
	return id
}

func (f *fields) hex(dst []byte) {
	if !decodeHex(dst, f.text()) {
		f.fail(fmt.Sprintf("want %d bytes in lower-case hex", len(dst)))
	}
}

func (f *fields) signature() []byte {
	text := f.text()
	if string(text) == "-" {
		return nil
	}
	sig := make([]byte, min(len(text)/2, maxSignature))
	if len(sig) == 0 || !decodeHex(sig, text) {
		f.fail("a beacon signature is neither '-' nor lower-case hex of at most 256 bytes")
	}
	return sig
}

func (f *fields) lane() Lane {
	text := f.text()
	if string(text) == string(General) {
		return General // avoids a copy
	}
	name := string(text)
	if !IsLane(name) {
		f.fail("a lane is not 1 to 32 of a-z, 0-9 and '-'")
	}
	return Lane(name)
}

// lots reads numbers joined by commas.
func (f *fields) lots() (lots []uint32) {
	for text, more := f.text(), true; more; {
		var one []byte
		one, text, more = bytes.Cut(text, []byte(","))
		n, err := strconv.ParseUint(string(one), 10, 32)
		if err != nil || len(lots) == maxDrums {
			f.fail("lots are not numbers joined by ','")
			return nil
		}
		lots = append(lots, uint32(n))
	}
	return lots
}

func (f *fields) reason() Reason {
	text := f.text()
	for _, r := range reasons {
		if string(text) == string(r) {
			return r // avoids a copy
		}
	}
	f.fail("unknown reason for a skip")
	return ""
}

func (f *fields) outflow() Outflow { return Outflow{f.number32(), f.number32()} }
func (f *fields) rule() WindowRule { return WindowRule{f.time(), f.millis()} }

func (f *fields) amend() *Amend {
	e := &Amend{Time: f.time(), Change: Change(f.text())}
	switch e.Change {
	case ChangeResume, ChangeOpen, ChangeShut:
	case ChangePause:
		e.Claims = len(f.rest) > 0
	case ChangeOutflow:
		e.Outflow = f.outflow()
	case ChangeMessage:
		f.hex(e.Message[:])
	case ChangeWindows:
		e.Closes = f.closes()
		for len(f.rest) > 0 && f.bad == "" {
			e.Windows = append(e.Windows, f.rule())
		}
	case ChangeSeats:
		e.Seats = f.number32()
	case ChangeUnguarded:
		e.From, e.Until, e.Requests = f.time(), f.time(), f.number()
	default:
		f.fail("unknown kind of amendment")
	}
	return e
}

// want skips a field whose value is fixed.
func (f *fields) want(word string) *fields {
	if string(f.text()) != word {
		f.fail(fmt.Sprintf("want %q here", word))
	}
	return f
}

// more reports whether the next line begins with word, and skips that word.
func (f *fields) more(word string) bool {
	if f.bad != "" || !bytes.HasPrefix(f.rest, []byte(word+" ")) {
		return false
	}
	f.text()
	return true
}

func (f *fields) beacon() *Beacon {
	scheme := f.token()
	if scheme == NoBeacon {
		return nil
	} else if scheme != beacon.Scheme {
		f.fail("unknown beacon scheme")
	}
	b := &Beacon{}
	b.ID = f.token()
	f.hex(b.PublicKey[:])
	b.Genesis, b.Period = int64(f.number()), f.number32()
	f.hex(b.GroupHash[:])
	b.Margin = f.millis()
	return b
}

func (f *fields) room() *Room {
	e := &Room{}
	e.Created = f.want("1").want("created").time()
	e.Origin = f.want("origin").token()
	e.LogKey = f.want("log").token()
	f.want("vrf").want(VRFSuite).hex(e.VRFKey[:])
	e.Beacon = f.want("beacon").beacon()
	if f.more("witnesses") {
		e.Quorum = f.number32()
	}
	for f.more("witness") {
		e.Witnesses = append(e.Witnesses, f.token())
	}
	for f.more("lane") {
		e.Lanes = append(e.Lanes, LaneRule{f.lane(), f.number32()})
	}
	if f.more("party") {
		e.Party = f.number32()
	}
	if f.more("seats") {
		e.Seats = f.number32()
	}
	e.Opens = f.want("opens").time()
	e.Starts = f.want("starts").time()
	e.Closes = f.want("closes").closes()
	for f.more("window") {
		e.Windows = append(e.Windows, f.rule())
	}
	e.Notice = f.want("notice").millis()
	e.Outflow = f.want("outflow").outflow()
	e.Claim = f.want("claim").millis()
	e.Grace = f.want("grace").millis()
	e.Session = f.want("session").millis()
	return e
}
