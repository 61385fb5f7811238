package fairness

import (
	"bytes"
	"errors"
	"fmt"
)

// ErrGrammar is returned for a text that is not an entry in canonical form.
var ErrGrammar = errors.New("not a canonical entry")

// Parser reads entries without allocating for the frequent kinds. The zero value is ready to use.
// It is not safe for concurrent use.
type Parser struct {
	codec     codec
	rewritten codec // the entry as AppendEntry writes it, to compare

	arrive Arrive
	assign Assign
	admit  Admit
	skip   Skip
	call   Call
}

// AppendEntry appends the canonical text of an entry, without a final newline.
func AppendEntry(dst []byte, e Entry) []byte {
	c := codec{out: dst}
	return c.write(e)
}

// ParseEntry reads one entry. See [Parser.Parse].
func ParseEntry(text []byte) (Entry, error) { return new(Parser).Parse(text) }

// Parse reads one entry. It accepts only the output of [AppendEntry]: it writes the entry again and
// compares the bytes. Any other text returns [ErrGrammar]. The entry is valid until the next call;
// text is not retained.
func (p *Parser) Parse(text []byte) (Entry, error) {
	if len(text) > MaxEntrySize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrGrammar, len(text), MaxEntrySize)
	}
	c := &p.codec
	*c = codec{in: text, reading: true}
	kind := c.text()
	e := p.blank(Kind(kind))
	if e == nil {
		return nil, fmt.Errorf("%w: unknown kind %.20q", ErrGrammar, kind)
	}
	if e.fields(c); c.bad != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrGrammar, kind, c.bad)
	}
	p.rewritten.out = p.rewritten.out[:0]
	if !bytes.Equal(p.rewritten.write(e), text) {
		return nil, fmt.Errorf("%w: %s: not in canonical form", ErrGrammar, kind)
	}
	return e, nil
}

// blank returns an empty entry of a kind, or nil.
func (p *Parser) blank(kind Kind) Entry {
	switch kind {
	case KindArrive:
		p.arrive = Arrive{}
		return &p.arrive
	case KindAssign:
		p.assign = Assign{}
		return &p.assign
	case KindAdmit:
		p.admit = Admit{}
		return &p.admit
	case KindSkip:
		p.skip = Skip{}
		return &p.skip
	case KindCall:
		p.call = Call{UpTo: p.call.UpTo[:0]}
		return &p.call
	default: // a kind that is too rare to use an entry again
		if blank, ok := blanks[kind]; ok {
			return blank()
		}
		return nil
	}
}

var blanks = map[Kind]func() Entry{
	KindRoom:    func() Entry { return &Room{} },
	KindMerit:   func() Entry { return &Merit{} },
	KindFreeze:  func() Entry { return &Freeze{} },
	KindDraw:    func() Entry { return &Draw{} },
	KindExtend:  func() Entry { return &Extend{} },
	KindRestore: func() Entry { return &Restore{} },
	KindAmend:   func() Entry { return &Amend{} },
	KindTell:    func() Entry { return &Tell{} },
	KindBeat:    func() Entry { return &Beat{} },
	KindEnd:     func() Entry { return &End{} },
}
