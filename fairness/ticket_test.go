package fairness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestNewTicketByDefinition(t *testing.T) {
	for i := range 100 {
		origin := strings.Repeat("o", 1+3*i)
		secret := sha256.Sum256([]byte{byte(i)})
		ticket := NewTicket(origin, secret)
		pass := NewPassID(origin, ticket)

		sum := sha256.Sum256([]byte("proofline/ticket/v1\x00" + origin + "\x00" + string(secret[:])))
		if got, want := ticket.String(), uuidText(sum); got != want {
			t.Errorf("ticket of secret %d is %s, want %s", i, got, want)
		}
		sum = sha256.Sum256([]byte("proofline/pass/v1\x00" + origin + "\x00" + string(ticket[:])))
		if got, want := pass.String(), uuidText(sum); got != want {
			t.Errorf("pass of ticket %d is %s, want %s", i, got, want)
		}
	}
}

// uuidText makes a UUIDv8 of the first half of a hash, digit by digit.
func uuidText(sum [32]byte) string {
	digits := []byte(fmt.Sprintf("%x", sum[:16]))
	digits[12] = '8'
	digits[16] = "89ab"[strings.IndexByte("0123456789abcdef", digits[16])%4]
	return fmt.Sprintf("%s-%s-%s-%s-%s", digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
}

func TestTicketDependsOnEverything(t *testing.T) {
	seen := map[Ticket]string{}
	add := func(what, origin string, secret [SecretSize]byte) {
		ticket := NewTicket(origin, secret)
		if before, twice := seen[ticket]; twice {
			t.Errorf("%s has the ticket of %s", what, before)
		}
		seen[ticket] = what
	}
	add("the ticket", "example.com/r/a", [SecretSize]byte{})
	add("another origin", "example.com/r/b", [SecretSize]byte{})
	add("a longer origin", "example.com/r/a\x00", [SecretSize]byte{})
	for i := range SecretSize * 8 {
		var secret [SecretSize]byte
		secret[i/8] = 1 << (i % 8)
		add(fmt.Sprintf("bit %d", i), "example.com/r/a", secret)
	}
}

func TestParseTicket(t *testing.T) {
	want := NewTicket("example.com/r/a", [SecretSize]byte{1})
	text := want.String()
	if got, err := ParseTicket(text); err != nil || got != want {
		t.Fatalf("parse %s: got %v, %v", text, got, err)
	}
	for _, bad := range []string{
		"", text[1:], text + "0", " " + text[1:], text[:35] + " ", strings.ToUpper(text), strings.ReplaceAll(text, "-", ""),
		"{" + text[1:35] + "}", strings.Repeat("-", 36), strings.Repeat("0", 36),
	} {
		if got, err := ParseTicket(bad); !errors.Is(err, ErrTicket) || got != (Ticket{}) {
			t.Errorf("parse %q: got %v, %v; want ErrTicket", bad, got, err)
		}
	}
}

// TestParseTicketMangled replaces every byte by every other: a text that is still accepted must be another
// ticket in its canonical form.
func TestParseTicketMangled(t *testing.T) {
	want := NewTicket("example.com/r/a", [SecretSize]byte{1})
	taken := 0
	for i := range want.String() {
		for c := range 256 {
			text := []byte(want.String())
			if text[i] == byte(c) {
				continue
			}
			text[i] = byte(c)
			got, err := ParseTicket(string(text))
			if err != nil {
				continue
			}
			taken++
			if got == want || got.String() != string(text) || !isUUID8(got) {
				t.Errorf("parse %q: got %v", text, got)
			}
		}
	}
	// 30 digits have 15 other values, the variant's digit has 3, and the version's digit none.
	if taken != 30*15+3 {
		t.Errorf("%d one-byte changes are tickets, want %d", taken, 30*15+3)
	}
}

func FuzzParseTicket(f *testing.F) {
	f.Add("00000000-0000-8000-8000-000000000000")
	f.Add("FFFFFFFF-ffff-8fff-bfff-ffffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		ticket, err := ParseTicket(text)
		if err == nil && ticket.String() != text {
			t.Errorf("parse %q: got %v", text, ticket)
		}
	})
}
