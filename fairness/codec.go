package fairness

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
)

const maxSignature = 256 // bytes of a beacon signature

// codec writes the fields of an entry, or reads them, so that each kind of entry lists its fields once. Reading
// accepts more than writing makes: a reader writes the entry again and compares.
type codec struct {
	out     []byte // written so far
	in      []byte // still to be read, into zero values
	reading bool
	bad     string // the first error of reading; later fields may be anything
}

// write writes a whole entry, and returns all that was written.
func (c *codec) write(e Entry) []byte {
	kind, _ := e.head()
	c.out = append(c.out, kind...)
	e.fields(c)
	return c.out
}

func (c *codec) fail(what string) {
	if c.bad == "" {
		c.bad = what
	}
}

// skip skips a field of so many bytes, and the separator after it, which is checked when the entry is written again.
func (c *codec) skip(field int) { c.in = c.in[min(field+1, len(c.in)):] }

// text reads the next field, up to a space or newline.
func (c *codec) text() []byte {
	i := 0
	for i < len(c.in) && c.in[i] != ' ' && c.in[i] != '\n' {
		i++
	}
	field := c.in[:i]
	c.skip(i)
	if len(field) == 0 {
		c.fail("a field is missing")
	}
	return field
}

// fixed is a field with one value.
func (c *codec) fixed(word string) *codec {
	if !c.reading {
		c.out = append(append(c.out, ' '), word...)
	} else if string(c.text()) != word {
		c.fail(fmt.Sprintf("want %q here", word))
	}
	return c
}

// line is the first word of a line.
func (c *codec) line(word string) *codec {
	if c.reading {
		return c.fixed(word)
	}
	c.out = append(append(c.out, '\n'), word...)
	return c
}

// begins reports whether an optional line that begins with word is there: when writing, written says so.
func (c *codec) begins(word string, written bool) bool {
	if c.reading {
		written = c.bad == "" && bytes.HasPrefix(c.in, []byte(word+" "))
	}
	if written {
		c.line(word)
	}
	return written
}

// more reports whether so many fields follow; written says so for writing.
func (c *codec) more(fields int, written bool) bool {
	if c.reading {
		return c.bad == "" && len(c.in) > 0 && (fields == 1 || bytes.Count(c.in, []byte(" ")) >= fields-1)
	}
	return written
}

// lines is a line for each value, all of which begin with word.
func lines[T any](c *codec, word string, list *[]T, one func(*codec, *T) *codec) {
	for i := 0; c.begins(word, i < len(*list)); i++ {
		if c.reading {
			*list = append(*list, *new(T))
		}
		one(c, &(*list)[i])
	}
}

// rest is as many values as follow, each of so many fields.
func rest[T any](c *codec, fields int, list *[]T, one func(*codec, *T) *codec) {
	for i := 0; c.more(fields, i < len(*list)); i++ {
		if c.reading {
			*list = append(*list, *new(T))
		}
		one(c, &(*list)[i])
	}
}

// below is a decimal below a limit.
func (c *codec) below(n, limit uint64) uint64 {
	if !c.reading {
		c.out = strconv.AppendUint(append(c.out, ' '), n, 10)
		return n
	}
	i := 0
	for n = 0; i < len(c.in) && c.in[i]-'0' < 10; i++ {
		n = 10*n + uint64(c.in[i]-'0')
	}
	c.skip(i)
	if i == 0 || i > 19 || n >= limit { // 19 digits do not overflow
		c.fail("a number contains a non-digit or is too large")
	}
	return n
}

func (c *codec) number(n *uint64) *codec {
	*n = c.below(*n, 1<<63)
	return c
}

func (c *codec) position(p *Position) *codec { return c.number((*uint64)(p)) }

func (c *codec) small(n *uint32) *codec {
	*n = uint32(c.below(uint64(*n), 1<<32))
	return c
}

func (c *codec) time(t *Time) *codec {
	*t = Time(c.below(uint64(*t), uint64(Never)))
	return c
}

func (c *codec) millis(m *Millis) *codec {
	*m = Millis(c.below(uint64(*m), uint64(Never)+1))
	return c
}

func (c *codec) closes(t *Time) *codec {
	if c.reading && bytes.HasPrefix(c.in, []byte("never")) || !c.reading && *t == Never {
		*t = Never
		return c.fixed("never")
	}
	return c.time(t)
}

// token is printable ASCII without spaces.
func (c *codec) token(s *string) *codec {
	if !c.reading {
		return c.fixed(*s)
	}
	if *s = string(c.text()); !isToken(*s) {
		c.fail("a field has a character that is not printable ASCII")
	}
	return c
}

func (c *codec) lane(l *Lane) *codec {
	if !c.reading {
		return c.fixed(string(*l))
	}
	if text := c.text(); string(text) == string(General) {
		*l = General // avoids a copy
	} else if *l = Lane(text); !IsLane(string(*l)) {
		c.fail("a name is not 1 to 32 of a-z, 0-9 and '-'")
	}
	return c
}

func (c *codec) currency(s *string) *codec {
	if c.token(s); c.reading && (len(*s) != 3 || strings.Trim(*s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		c.fail("a currency is not three letters A-Z")
	}
	return c
}

func (c *codec) reason(r *Reason) *codec {
	if !c.reading {
		return c.fixed(string(*r))
	}
	text := c.text()
	for _, known := range reasons {
		if string(text) == string(known) {
			*r = known // avoids a copy
			return c
		}
	}
	c.fail("unknown reason for a skip")
	return c
}

func (c *codec) id(id *[16]byte) *codec {
	if !c.reading {
		c.out = appendUUID(append(c.out, ' '), *id)
		return c
	}
	var ok bool
	n := min(uuidLength, len(c.in))
	if *id, ok = parseUUID(c.in[:n]); !ok {
		c.fail("an id is not a lower-case UUID of version 8")
	}
	c.skip(n)
	return c
}

// hex is exactly so many bytes.
func (c *codec) hex(b []byte) *codec {
	if !c.reading {
		c.out = hex.AppendEncode(append(c.out, ' '), b)
	} else if !decodeHex(b, c.text()) {
		c.fail(fmt.Sprintf("want %d bytes in lower-case hex", len(b)))
	}
	return c
}

func (c *codec) cosignature(s *Cosignature) *codec { return c.hex(s[:]) }

// signature is "-" for none.
func (c *codec) signature(s *[]byte) *codec {
	if !c.reading && len(*s) > 0 {
		return c.hex(*s)
	}
	text := "-"
	if c.token(&text); c.reading && text != "-" {
		*s = make([]byte, min(len(text)/2, maxSignature))
		if len(*s) == 0 || !decodeHex(*s, []byte(text)) {
			c.fail("a beacon signature is neither '-' nor lower-case hex of at most 256 bytes")
		}
	}
	return c
}

// lots are numbers joined by commas.
func (c *codec) lots(lots *[]uint32) *codec {
	if !c.reading {
		for i, n := range *lots {
			c.out = strconv.AppendUint(append(c.out, " ,"[min(i, 1)]), uint64(n), 10)
		}
		return c
	}
	for one := range bytes.SplitSeq(c.text(), []byte(",")) {
		n, err := strconv.ParseUint(string(one), 10, 32)
		if err != nil || len(*lots) == MaxLanes*MaxSlots {
			c.fail("lots are not numbers joined by ','")
			break
		}
		*lots = append(*lots, uint32(n))
	}
	return c
}

func (c *codec) rule(r *WindowRule) *codec { return c.time(&r.From).millis(&r.Length) }

func (c *codec) outflow(o *Outflow) *codec { return c.small(&o.PerMinute).small(&o.MaxActive) }

func (c *codec) laneRule(l *LaneRule) *codec {
	return c.lane(&l.Name).small(&l.Weight).names(&l.Needs)
}

// names are those of methods joined by commas, or "-" for none.
func (c *codec) names(list *[]string) *codec {
	text := "-"
	if len(*list) > 0 {
		text = strings.Join(*list, ",")
	}
	if c.token(&text); c.reading && text != "-" {
		*list = strings.Split(text, ",")
	}
	return c
}

// method is the rest of a line.
func (c *codec) method(m *credential.Method) *codec {
	if !c.reading {
		c.out = m.AppendText(append(c.out, ' '))
		return c
	}
	var text []byte
	var err error
	text, c.in, _ = bytes.Cut(c.in, []byte("\n"))
	if *m, err = credential.ParseMethod(string(text)); err != nil || m.Kind != credential.Work && !isToken(m.Key) {
		c.fail(fmt.Sprintf("not a method: %.80q", text))
	}
	return c
}

func (c *codec) credential(one *credential.Credential) *codec {
	if !c.reading {
		c.out = one.AppendText(append(c.out, ' '))
		return c
	}
	var err error
	if *one, err = credential.Parse(c.text(), c.text(), c.text()); err != nil {
		c.fail(err.Error())
	}
	return c
}

func (c *codec) beacon(b **Beacon) *codec {
	scheme := NoBeacon
	if *b != nil {
		scheme = beacon.Scheme
	}
	switch c.token(&scheme); {
	case scheme == NoBeacon:
		return c
	case scheme != beacon.Scheme:
		c.fail("unknown beacon scheme")
	case c.reading:
		*b = &Beacon{}
	}
	if c.bad != "" {
		return c
	}
	v := *b
	c.token(&v.ID).hex(v.PublicKey[:])
	v.Genesis = int64(c.below(uint64(v.Genesis), 1<<63))
	return c.small(&v.Period).hex(v.GroupHash[:]).millis(&v.Margin)
}
