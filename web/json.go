package web

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// object writes JSON member by member, without reflection. Names are constants that need no escaping.
type object struct{ b []byte }

// reset starts an empty object in the same buffer.
func (o *object) reset() { o.b = append(o.b[:0], '{') }

// name starts a member, or with the empty name an element of a list.
func (o *object) name(name string) {
	if last := o.b[len(o.b)-1]; last != '{' && last != '[' {
		o.b = append(o.b, ',')
	}
	if name != "" {
		o.b = append(o.b, '"')
		o.b = append(o.b, name...)
		o.b = append(o.b, '"', ':')
	}
}

// open starts a member that is an object, which close ends.
func (o *object) open(name string) {
	o.name(name)
	o.b = append(o.b, '{')
}

func (o *object) close() { o.b = append(o.b, '}') }

// list starts a member that is a list, which closeList ends.
func (o *object) list(name string) {
	o.name(name)
	o.b = append(o.b, '[')
}

func (o *object) closeList() { o.b = append(o.b, ']') }

func (o *object) text(name, value string) {
	o.name(name)
	o.b = appendText(o.b, value)
}

func (o *object) number(name string, value uint64) {
	o.name(name)
	o.b = strconv.AppendUint(o.b, value, 10)
}

// decimal writes a number with three decimals.
func (o *object) decimal(name string, value float64) {
	o.name(name)
	o.b = strconv.AppendFloat(o.b, value, 'f', 3, 64)
}

func (o *object) flag(name string, value bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, value)
}

func (o *object) null(name string) {
	o.name(name)
	o.b = append(o.b, "null"...)
}

func (o *object) time(name string, value time.Time) {
	o.name(name)
	o.b = append(o.b, '"')
	o.b = appendTime(o.b, value.UTC())
	o.b = append(o.b, '"')
}

// millis writes a time of the transcript.
func (o *object) millis(name string, value int64) { o.time(name, time.UnixMilli(value)) }

// appendTime appends a time of the years 0 to 9999 in the form 2006-01-02T15:04:05.000Z. It takes a
// third of the time of AppendFormat.
func appendTime(dst []byte, t time.Time) []byte {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = appendDigits(dst, year, 4, '-')
	dst = appendDigits(dst, int(month), 2, '-')
	dst = appendDigits(dst, day, 2, 'T')
	dst = appendDigits(dst, hour, 2, ':')
	dst = appendDigits(dst, minute, 2, ':')
	dst = appendDigits(dst, second, 2, '.')
	return appendDigits(dst, t.Nanosecond()/int(time.Millisecond), 3, 'Z')
}

// appendDigits appends n digits of v and the byte after.
func appendDigits(dst []byte, v, n int, after byte) []byte {
	dst = append(dst, "0000"[:n]...)
	for i := len(dst) - 1; n > 0; i, n = i-1, n-1 {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, after)
}

// isPlain holds the bytes that are the same in a JSON string.
var isPlain = func() (plain [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		plain[c] = c != '"' && c != '\\'
	}
	return plain
}()

// appendText appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText[T string | []byte](dst []byte, text T) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if isPlain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(string(text[i:min(i+utf8.UTFMax, len(text))])); r != utf8.RuneError ||
				size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, text[from:i]...)
		switch {
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, "\ufffd"...)
		}
		i++
		from = i
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}
