package format

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Clean trims typed text, and replaces what texts of a room must not contain.
func Clean(s string) string {
	s = strings.NewReplacer("\x00", "\uFFFD", "\r\n", "\n").Replace(strings.TrimSpace(s))
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxSlug is the maximum length of a slug.
const maxSlug = 63

// Slug proposes a slug for a title, or "" if the title has no usable character. The editor's script
// proposes the same (web/ui/src/console/slug.ts).
func Slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ReplaceAll(strings.ToLower(norm.NFKD.String(title)), "\u00df", "ss") {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case unicode.Is(unicode.Mn, r):
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	slug := b.String()
	return strings.TrimRight(slug[:min(len(slug), maxSlug)], "-")
}

// Forms of a length of time: in words, or as Go writes it: "1 min 30 s", "1m30s", "2 hours".
var (
	lengthForm = regexp.MustCompile(`^(?:\s*[0-9]{1,9}(?:\.[0-9]{1,3})?\s*[a-z]+)+\s*$`)
	lengthPart = regexp.MustCompile(`([0-9.]+)\s*([a-z]+)`)
)

var lengthUnits = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// ReadLength reads a length of time in words, rounded to milliseconds.
func ReadLength(text string) (time.Duration, bool) {
	text = strings.ToLower(text)
	if !lengthForm.MatchString(text) {
		return 0, false
	}
	var sum float64
	for _, part := range lengthPart.FindAllStringSubmatch(text, -1) {
		unit, ok := lengthUnits[part[2]]
		if !ok {
			unit, ok = lengthUnits[strings.TrimSuffix(part[2], "s")]
		}
		n, err := strconv.ParseFloat(part[1], 64)
		if !ok || err != nil {
			return 0, false
		}
		sum += n * float64(unit.Milliseconds())
	}
	if sum >= float64(math.MaxInt64/int64(time.Millisecond)) {
		return 0, false
	}
	return time.Duration(math.Round(sum)) * time.Millisecond, true
}

var wholeNumber = regexp.MustCompile(`^[0-9]{1,20}$`)

// ReadDigits returns the digits of a typed whole number without leading zeros. The digits may be
// separated by commas and spaces.
func ReadDigits(text string) (digits string, ok bool) {
	digits = strings.NewReplacer(",", "", " ", "", "\u202f", "", "\u00a0", "").Replace(text)
	if !wholeNumber.MatchString(digits) {
		return "", false
	}
	return cmp.Or(strings.TrimLeft(digits, "0"), "0"), true
}

// ReadCount reads a typed whole number of 32 bits.
func ReadCount(text string) (uint32, bool) {
	digits, ok := ReadDigits(text)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	return uint32(n), err == nil
}
