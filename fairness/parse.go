package fairness

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrGrammar is returned when a text is no entry in its one canonical form.
var ErrGrammar = errors.New("not a canonical entry")

// maxSignature bounds the one field of variable length, a beacon signature.
const maxSignature = 256

// Parser reads entries one after the other without allocating for the
// frequent kinds. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	fields fields
	again  []byte // the entry written back, to compare

	arrive Arrive
	assign Assign
	admit  Admit
	skip   Skip
	call   Call
}

// ParseEntry reads one entry. See [Parser.Parse].
func ParseEntry(text []byte) (Entry, error) { return new(Parser).Parse(text) }

// Parse reads one entry. It accepts exactly what AppendEntry writes: what it
// read is written again and must be the same bytes. Everything else is
// [ErrGrammar]. The entry is valid until the next call; text is not kept.
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
	p.again = e.AppendEntry(p.again[:0])
	if !bytes.Equal(p.again, text) {
		return nil, fmt.Errorf("%w: %s: not in the form it would be written", ErrGrammar, kind)
	}
	return e, nil
}

func (p *Parser) body(kind []byte) Entry {
	f := &p.fields
	switch Kind(kind) {
	case KindArrive:
		p.arrive = Arrive{f.time(), WindowIndex(f.number()), f.number32(), Ticket(f.id()), f.lane()}
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
		p.call = Call{f.time(), f.lane(), Position(f.number())}
		return &p.call
	case KindFreeze:
		e := &Freeze{Time: f.time(), Window: WindowIndex(f.number()), Lots: f.number32(), Size: f.number()}
		f.hex(e.Root[:])
		e.Round = f.number()
		f.hex(e.Proof[:])
		return e
	case KindDraw:
		e := &Draw{Time: f.time(), Window: WindowIndex(f.number()), Signature: f.signature()}
		f.hex(e.Seed[:])
		return e
	case KindMerit:
		return &Merit{f.time(), Ticket(f.id()), string(f.text()), string(f.text())}
	case KindAmend:
		return f.amend()
	case KindEnd:
		return &End{f.time()}
	case KindRoom:
		return f.room()
	}
	return nil
}

// fields walks the space-separated fields of an entry. After the first bad
// field every further one reads as zero, and bad says what was wrong.
type fields struct {
	rest []byte
	bad  string
}

func (f *fields) fail(what string) {
	if f.bad == "" {
		f.bad = what
	}
}

// text returns the next field, up to a space or newline. The separator's
// kind is checked by writing the entry again.
func (f *fields) text() []byte {
	i := 0
	for i < len(f.rest) && f.rest[i] != ' ' && f.rest[i] != '\n' {
		i++
	}
	field := f.rest[:i]
	f.rest = f.rest[min(i+1, len(f.rest)):]
	if len(field) == 0 {
		f.fail("a field is missing")
	}
	return field
}

// number reads a decimal below 2^63.
func (f *fields) number() uint64 {
	var n uint64
	text := f.text()
	if len(text) > 19 {
		f.fail("a number is too long")
		return 0
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			f.fail("a number has a character that is no digit")
			return 0
		}
		n = n*10 + uint64(c-'0')
	}
	if n >= 1<<63 {
		f.fail("a number is too large")
		return 0
	}
	return n
}

func (f *fields) number32() uint32 {
	n := f.number()
	if n >= 1<<32 {
		f.fail("a number is too large")
		return 0
	}
	return uint32(n)
}

func (f *fields) millis() Millis {
	n := f.number()
	if n > uint64(Never) {
		f.fail("a duration is too long")
		return 0
	}
	return Millis(n)
}

func (f *fields) time() Time {
	n := f.number()
	if n >= uint64(Never) {
		f.fail("a time is too late")
		return 0
	}
	return Time(n)
}

func (f *fields) closes() Time {
	if bytes.HasPrefix(f.rest, []byte("never")) {
		f.text()
		return Never
	}
	return f.time()
}

func (f *fields) id() [16]byte {
	id, ok := parseUUID(f.text())
	if !ok {
		f.fail("an id is no lower-case UUID of version 8")
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
		return General // without a copy
	}
	if len(text) > 32 {
		f.fail("a lane has more than 32 characters")
	}
	for _, c := range text {
		if c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			f.fail("a lane has a character other than a-z, 0-9 and '-'")
		}
	}
	return Lane(text)
}

func (f *fields) reason() Reason {
	switch r := Reason(f.text()); r {
	case NoShow, Left, Revoked:
		return r
	}
	f.fail("unknown reason of a skip")
	return ""
}

func (f *fields) outflow() Outflow { return Outflow{f.number32(), f.number32()} }

func (f *fields) rule() WindowRule { return WindowRule{f.time(), f.millis()} }

func (f *fields) amend() *Amend {
	e := &Amend{Time: f.time(), Change: Change(f.text())}
	switch e.Change {
	case ChangePause, ChangeResume:
	case ChangeOutflow:
		e.Outflow = f.outflow()
	case ChangeMessage:
		f.hex(e.Message[:])
	case ChangeWindows:
		e.Closes = f.closes()
		for len(f.rest) > 0 && f.bad == "" {
			e.Windows = append(e.Windows, f.rule())
		}
	default:
		f.fail("unknown change of an amendment")
	}
	return e
}

// word skips the expected first word of a policy line.
func (f *fields) word(want string) {
	if string(f.text()) != want {
		f.fail(fmt.Sprintf("want the line %q here", want))
	}
}

// more tells whether the next line begins with that word, and skips it.
func (f *fields) more(word string) bool {
	if f.bad != "" || !bytes.HasPrefix(f.rest, append([]byte(word), ' ')) {
		return false
	}
	f.text()
	return true
}

func (f *fields) room() *Room {
	e := &Room{}
	f.word("1")
	f.word("created")
	e.Created = f.time()
	f.word("origin")
	e.Origin = string(f.text())
	f.word("log")
	e.LogKey = string(f.text())
	f.word("vrf")
	f.word(VRFSuite)
	f.hex(e.VRFKey[:])
	f.word("beacon")
	e.Beacon = string(f.text())
	for f.more("lane") {
		e.Lanes = append(e.Lanes, f.lane())
	}
	f.word("opens")
	e.Opens = f.time()
	f.word("starts")
	e.Starts = f.time()
	f.word("closes")
	e.Closes = f.closes()
	for f.more("window") {
		e.Windows = append(e.Windows, f.rule())
	}
	f.word("outflow")
	e.Outflow = f.outflow()
	f.word("claim")
	e.Claim = f.millis()
	f.word("session")
	e.Session = f.millis()
	return e
}
