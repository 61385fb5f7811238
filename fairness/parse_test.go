package fairness

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/credential"
)

const (
	t1 = "0badcafe-0123-8123-8123-456789abcdef"
	t2 = "ffffffff-ffff-8fff-bfff-ffffffffffff"
	h1 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
)

var (
	ticket1 = Ticket{0x0b, 0xad, 0xca, 0xfe, 0x01, 0x23, 0x81, 0x23, 0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	ticket2 = Ticket{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x8f, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	hash1   = [HashSize]byte{
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
		0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
	}
)

// golden has entries of every kind and shape, each with its only text.
var golden = []struct {
	text  string
	entry Entry
}{
	{
		"room 1\ncreated 1799999940000\norigin queue.example.com/r/show\nlog queue.example.com/r/show+00112233+AQID\n" +
			"vrf ECVRF-P256-SHA256-SSWU 020102030000000000000000000000000000000000000000000000000000000000\n" +
			"beacon none\nlane general 1 -\nopens 1800000000000\nstarts 1800000060000\ncloses 1800000200000\n" +
			"window 1800000000000 60000\nwindow 1800000060000 10000\nnotice 10000\noutflow 600 100\nclaim 30000\ngrace 86400000\nsession 600000",
		&Room{testPolicy()},
	},
	{
		"room 1\ncreated 0\norigin a\nlog b\nvrf ECVRF-P256-SHA256-SSWU " + strings.Repeat("0", 66) +
			"\nbeacon none\nlane a 0 -\nlane 09-az 4294967295 x,-,\nlots club,x\nparty 4294967295\nseats 1\nopens 0\nstarts 0\ncloses never\nslots 9007199254740991\nnotice 9007199254740991\noutflow 0 4294967295\nclaim 0\ngrace 0\nsession 9007199254740991",
		&Room{Policy{
			Origin: "a", LogKey: "b", Lanes: []LaneRule{{"a", 0, nil}, {"09-az", 1<<32 - 1, []string{"x", "-", ""}}}, Closes: Never, Lots: []string{"club", "x"}, Slots: 1<<53 - 1, Party: 1<<32 - 1, Seats: 1, Notice: 1<<53 - 1,
			Outflow: Outflow{0, 1<<32 - 1}, Session: 1<<53 - 1,
		}},
	},
	{"arrive 1800000000000 3 41 " + t1 + " general", &Arrive{base, 3, 41, ticket1, General, 0, nil}},
	{"arrive 0 0 0 " + t2 + " -", &Arrive{0, 0, 0, ticket2, "-", 0, nil}},
	{
		"arrive 9007199254740990 9223372036854775807 4294967295 " + t1 + " " + strings.Repeat("z", 32) + " 4294967295",
		&Arrive{Never - 1, 1<<63 - 1, 1<<32 - 1, ticket1, Lane(strings.Repeat("z", 32)), 1<<32 - 1, nil},
	},
	{"beat 1800000000000", &Beat{Time: base}},
	{"beat 1800000000000 0a", &Beat{base, []byte{10}}},
	{"merit 7 " + t1 + " 5 task - 00", &Merit{7, ticket1, 5, credential.Credential{Method: "task", Evidence: []byte{0}}}},
	{
		"arrive 1800000000000 3 41 " + t1 + " general club " + h1 + " 0102 - - 03 7",
		&Arrive{base, 3, 41, ticket1, General, 7, []credential.Credential{
			{Method: "club", Nullifier: hash1[:], Evidence: []byte{1, 2}}, {Method: "-", Evidence: []byte{3}},
		}},
	},
	{
		"freeze 1800000060000 0 2 3 " + h1 + " 0 " + strings.Repeat("00", 80) + "ff",
		&Freeze{base + minute, 0, []uint32{2}, 3, hash1, 0, [ProofSize]byte{80: 0xff}},
	},
	{
		"freeze 1 0 0,4294967295,2 3 " + h1 + " 0 " + strings.Repeat("00", 81),
		&Freeze{1, 0, []uint32{0, 1<<32 - 1, 2}, 3, hash1, 0, [ProofSize]byte{}},
	},
	{"draw 1800000060000 12 - " + h1, &Draw{base + minute, 12, nil, Seed(hash1), nil}},
	{"draw 1800000060000 12 0a " + h1, &Draw{base + minute, 12, []byte{10}, Seed(hash1), nil}},
	{
		"draw 1 0 " + strings.Repeat("5a", 256) + " " + h1,
		&Draw{1, 0, bytes.Repeat([]byte{0x5a}, 256), Seed(hash1), nil},
	},
	{
		"draw 1 0 0a " + h1 + " " + strings.Repeat("0", 151) + "1 " + strings.Repeat("ff", 76),
		&Draw{1, 0, []byte{10}, Seed(hash1), []Cosignature{{75: 1}, Cosignature(bytes.Repeat([]byte{0xff}, 76))}},
	},
	{
		"room 1\ncreated 0\norigin a\nlog b\nvrf ECVRF-P256-SHA256-SSWU " + strings.Repeat("0", 66) +
			"\nbeacon bls-unchained-g1-rfc9380 moon " + strings.Repeat("01", 96) + " 9223372036854775807 4294967295 " + h1 + " 9007199254740991\n" +
			"witnesses 4294967295\nwitness a+b+c\nwitness d\nopens 0\nstarts 0\ncloses never\nnotice 0\noutflow 0 0\nclaim 0\ngrace 0\nsession 0",
		&Room{Policy{
			Origin: "a", LogKey: "b", Closes: Never, Witnesses: []string{"a+b+c", "d"}, Quorum: 1<<32 - 1,
			Beacon: &Beacon{beacon.Chain{
				ID: "moon", PublicKey: [96]byte(bytes.Repeat([]byte{1}, 96)), Genesis: 1<<63 - 1, Period: 1<<32 - 1, GroupHash: hash1,
			}, 1<<53 - 1},
		}},
	},
	{"assign 0 general 1 " + t2, &Assign{0, General, 1, ticket2}},
	{"assign 9223372036854775807 vip 9223372036854775807 " + t2, &Assign{1<<63 - 1, "vip", 1<<63 - 1, ticket2}},
	{"call 1800000060000 100", &Call{base + minute, []Position{100}}},
	{"call 0 0 9223372036854775807 0", &Call{0, []Position{0, 1<<63 - 1, 0}}},
	{"admit 1800000060000 " + t1 + " " + t2, &Admit{base + minute, ticket1, PassID(ticket2)}},
	{"skip 1800000060000 " + t1 + " no-show", &Skip{base + minute, ticket1, NoShow}},
	{"skip 1800000060000 " + t1 + " left", &Skip{base + minute, ticket1, Left}},
	{"skip 1800000060000 " + t1 + " revoked", &Skip{base + minute, ticket1, Revoked}},
	{"skip 1800000060000 " + t1 + " revoked-bot", &Skip{base + minute, ticket1, RevokedBot}},
	{"skip 1800000060000 " + t1 + " revoked-duplicate", &Skip{base + minute, ticket1, RevokedDuplicate}},
	{"skip 1800000060000 " + t1 + " revoked-fraud", &Skip{base + minute, ticket1, RevokedFraud}},
	{"skip 1800000060000 " + t1 + " revoked-request", &Skip{base + minute, ticket1, RevokedRequest}},
	{"amend 5 outflow 10000000 0", &Amend{Time: 5, Change: ChangeOutflow, Outflow: Outflow{10_000_000, 0}}},
	{"amend 5 pause", &Amend{Time: 5, Change: ChangePause}},
	{"amend 5 pause claims", &Amend{Time: 5, Change: ChangePause, Claims: true}},
	{"amend 5 resume", &Amend{Time: 5, Change: ChangeResume}},
	{"amend 5 message " + h1, &Amend{Time: 5, Change: ChangeMessage, Message: hash1}},
	{"amend 5 open", &Amend{Time: 5, Change: ChangeOpen}},
	{"amend 5 shut", &Amend{Time: 5, Change: ChangeShut}},
	{"amend 5 seats 4294967295", &Amend{Time: 5, Change: ChangeSeats, Seats: 1<<32 - 1}},
	{"skip 1800000060000 " + t1 + " too-large", &Skip{base + minute, ticket1, TooLarge}},
	{"extend 1800000060000 " + t1, &Extend{base + minute, ticket1}},
	{"restore 1800000060000 " + t1, &Restore{base + minute, ticket1}},
	{"tell 5 stock stalls 12", &Tell{Time: 5, Subject: TellStock, Name: "stalls", Count: 12}},
	{"tell 5 stock a-1 9223372036854775807", &Tell{Time: 5, Subject: TellStock, Name: "a-1", Count: 1<<63 - 1}},
	{"tell 5 price stalls 4500 9223372036854775807 EUR", &Tell{Time: 5, Subject: TellPrice, Name: "stalls", Min: 4500, Max: 1<<63 - 1, Currency: "EUR"}},
	{"tell 5 price stalls 9 0 JPY", &Tell{Time: 5, Subject: TellPrice, Name: "stalls", Min: 9, Currency: "JPY"}},
	{"tell 5 refused rate 3 4 7", &Tell{Time: 5, Subject: TellRefused, Name: "rate", From: 3, Until: 4, Count: 7}},
	{"tell 5 refused rate 4 3 0", &Tell{Time: 5, Subject: TellRefused, Name: "rate", From: 4, Until: 3}},
	{"tell 5 unguarded 3 4 0", &Tell{Time: 5, Subject: TellUnguarded, From: 3, Until: 4}},
	{"tell 5 unguarded 0 9007199254740990 9223372036854775807", &Tell{Time: 5, Subject: TellUnguarded, Until: Never - 1, Count: 1<<63 - 1}},
	{"tell 5 auto slow-site", &Tell{Time: 5, Subject: TellAuto, Name: "slow-site"}},
	{"amend 5 windows never", &Amend{Time: 5, Change: ChangeWindows, Closes: Never}},
	{
		"amend 5 windows 900 100 50 200 60",
		&Amend{Time: 5, Change: ChangeWindows, Closes: 900, Windows: []WindowRule{{100, 50}, {200, 60}}},
	},
	{"end 1800000200000", &End{base + 200*second}},
}

func TestGolden(t *testing.T) {
	kinds := map[Kind]bool{}
	for _, g := range golden {
		if got := string(AppendEntry([]byte("> "), g.entry)); got != "> "+g.text {
			t.Errorf("write: got %q, want %q", got, g.text)
		}
		got, err := ParseEntry([]byte(g.text))
		if err != nil {
			t.Errorf("parse %q: %v", g.text, err)
			continue
		}
		if diff := cmp.Diff(g.entry, got); diff != "" {
			t.Errorf("parse %q (-want +got):\n%s", g.text, diff)
		}
		if first, _, _ := strings.Cut(g.text, " "); KindOf(got) != Kind(first) {
			t.Errorf("kind of %q is %q", g.text, KindOf(got))
		}
		kinds[KindOf(got)] = true
	}
	if len(kinds) != 15 {
		t.Errorf("golden entries of %d kinds, want all 15", len(kinds))
	}
}

// checkText parses any bytes: an accepted text must be encoded as the same bytes, and all others rejected
// with [ErrGrammar].
func checkText(t *testing.T, p *Parser, text []byte) Entry {
	t.Helper()
	e, err := p.Parse(text)
	if err != nil {
		if !errors.Is(err, ErrGrammar) || e != nil {
			t.Errorf("parse %q: got %v, %v; want nil and ErrGrammar", text, e, err)
		}
		if len(err.Error()) > 200 {
			t.Errorf("parse %.40q: an error of %d bytes", text, len(err.Error()))
		}
		return nil
	}
	if again := AppendEntry(nil, e); !bytes.Equal(again, text) {
		t.Errorf("parse %q: is written as %q", text, again)
	}
	return e
}

// TestGoldenMangled replaces each byte by every other, removes each byte, and inserts bytes before each: no
// result may parse as the same entry.
func TestGoldenMangled(t *testing.T) {
	var p Parser
	for _, g := range golden {
		check := func(text []byte) {
			if e := checkText(t, &p, text); e != nil && cmp.Equal(e, g.entry) {
				t.Errorf("parse %q: the same entry as %q", text, g.text)
			}
		}
		for i := range len(g.text) {
			check([]byte(g.text[:i] + g.text[i+1:]))
			for c := range 256 {
				if byte(c) != g.text[i] {
					check([]byte(g.text[:i] + string([]byte{byte(c)}) + g.text[i+1:]))
				}
			}
			for _, c := range []byte(" \n0159afz-+A\x00\xff") {
				check([]byte(g.text[:i] + string([]byte{c}) + g.text[i:]))
			}
		}
		for c := range 256 {
			check(append([]byte(g.text), byte(c)))
		}
	}
}

// notEntries are texts that are nearly entries.
var notEntries = map[string]string{
	"nothing":                       "",
	"a space":                       " ",
	"a newline":                     "\n",
	"no kind":                       " 5",
	"an unknown kind":               "depart 5",
	"a kind in capitals":            "End 5",
	"the kind alone":                "end",
	"a kind and a space":            "end ",
	"a field too many":              "end 5 6",
	"two spaces":                    "end  5",
	"a tab":                         "end\t5",
	"a newline for a space":         "end\n5",
	"a final newline":               "end 5\n",
	"a carriage return":             "end 5\r",
	"a NUL":                         "end 5\x00",
	"a leading zero":                "end 05",
	"a plus":                        "end +5",
	"a minus":                       "end -5",
	"a minus zero":                  "end -0",
	"a fraction":                    "end 5.0",
	"an exponent":                   "end 5e1",
	"a hexadecimal number":          "end 0x5",
	"an underscore":                 "end 1_0",
	"a digit beyond ASCII":          "end ٥",
	"never as a time":               "end 9007199254740991",
	"never in words as a time":      "end never",
	"a time of 2^64":                "end 18446744073709551616",
	"a time of 2^64+5":              "end 18446744073709551621",
	"a seq of 2^32":                 "arrive 5 0 4294967296 " + t1 + " general",
	"a window of 2^63":              "arrive 5 9223372036854775808 0 " + t1 + " general",
	"a position of 2^63":            "call 5 general 9223372036854775808",
	"a session of 2^53":             strings.Replace(golden[0].text, "session 600000", "session 9007199254740992", 1),
	"never as a number":             "amend 5 windows 9007199254740991",
	"never and more":                "amend 5 windows nevermore",
	"half a window rule":            "amend 5 windows 900 100",
	"a change too many":             "amend 5 pause resume",
	"no change":                     "amend 5",
	"open and more":                 "amend 5 open 1",
	"unguarded without requests":    "tell 5 unguarded 3 4",
	"unguarded and more":            "tell 5 unguarded 3 4 0 0",
	"unguarded too late":            "tell 5 unguarded 3 9007199254740991 0",
	"unguarded by too many":         "tell 5 unguarded 3 4 9223372036854775808",
	"an amendment unguarded":        "amend 5 unguarded 3 4 0",
	"an unknown subject":            "tell 5 weather 3",
	"no subject":                    "tell 5",
	"an extension of nothing":       "extend 5",
	"a restore of nothing":          "restore 5",
	"a restore and more":            "restore 5 " + t1 + " revoked",
	"an extension and more":         "extend 5 " + t1 + " 1000",
	"no extensions":                 strings.Replace(golden[0].text, "grace", "extend 0\ngrace", 1),
	"an extension too early":        strings.Replace(golden[0].text, "claim", "extend 1000\nclaim", 1),
	"two extensions":                strings.Replace(golden[0].text, "grace", "extend 1000\nextend 1000\ngrace", 1),
	"a stock without a number":      "tell 5 stock stalls",
	"a stock without a category":    "tell 5 stock 12",
	"a stock and more":              "tell 5 stock stalls 12 13",
	"a stock of -1":                 "tell 5 stock stalls -1",
	"a category in capitals":        "tell 5 stock Stalls 12",
	"a price in small letters":      "tell 5 price stalls 1 2 eur",
	"a price in two letters":        "tell 5 price stalls 1 2 EU",
	"a price in four letters":       "tell 5 price stalls 1 2 EURO",
	"a price with a digit":          "tell 5 price stalls 1 2 E1R",
	"a price without a currency":    "tell 5 price stalls 1 2",
	"a price in decimals":           "tell 5 price stalls 45.00 90 EUR",
	"refused without a reason":      "tell 5 refused 3 4 7",
	"refused without a number":      "tell 5 refused rate 3 4",
	"auto without a reason":         "tell 5 auto",
	"auto and more":                 "tell 5 auto slow site",
	"an unknown change":             "amend 5 keys",
	"an unknown reason":             "skip 5 " + t1 + " tired",
	"a lane too long":               "arrive 5 0 0 " + t1 + " " + strings.Repeat("z", 33),
	"a lane in capitals":            "arrive 5 0 0 " + t1 + " General",
	"a lane with a dot":             "arrive 5 0 0 " + t1 + " a.b",
	"no lane":                       "arrive 5 0 0 " + t1 + " ",
	"a call of no lane":             "call 5",
	"a call of too many lanes":      "call 5" + strings.Repeat(" 1", MaxLanes+1),
	"lots without a number":         "freeze 1 0 1,,2 3 " + h1 + " 0 " + strings.Repeat("00", 81),
	"lots with a comma at last":     "freeze 1 0 1, 3 " + h1 + " 0 " + strings.Repeat("00", 81),
	"lots with a leading zero":      "freeze 1 0 1,02 3 " + h1 + " 0 " + strings.Repeat("00", 81),
	"lots too large":                "freeze 1 0 4294967296 3 " + h1 + " 0 " + strings.Repeat("00", 81),
	"lots of too many drums":        "freeze 1 0 1" + strings.Repeat(",1", MaxLanes*MaxSlots) + " 3 " + h1 + " 0 " + strings.Repeat("00", 81),
	"a party of nothing":            "arrive 5 0 0 " + t1 + " general 0",
	"a party and more":              "arrive 5 0 0 " + t1 + " general 2 3",
	"a party with a sign":           "arrive 5 0 0 " + t1 + " general +2",
	"seats without a number":        "amend 5 seats",
	"seats and more":                "amend 5 seats 5 6",
	"no lots":                       strings.Replace(golden[0].text, "opens", "lots -\nopens", 1),
	"slots of nothing":              strings.Replace(golden[0].text, "notice", "slots 0\nnotice", 1),
	"slots before windows":          strings.Replace(golden[0].text, "window", "slots 5\nwindow", 1),
	"a merit without a seq":         "merit 7 " + t1 + " task - 00",
	"parties of nothing":            strings.Replace(golden[0].text, "opens", "party 0\nopens", 1),
	"no seats":                      strings.Replace(golden[0].text, "opens", "seats 0\nopens", 1),
	"seats before parties":          strings.Replace(golden[0].text, "opens", "seats 5\nparty 2\nopens", 1),
	"a lane without a weight":       strings.Replace(golden[0].text, "general 1 -", "general -", 1),
	"a lane and more":               strings.Replace(golden[0].text, "general 1 -", "general 1 - 1", 1),
	"a lane without needs":          strings.Replace(golden[0].text, "lane general 1 -", "lane general 1", 1),
	"a lane with no needs":          strings.Replace(golden[0].text, "lane general 1 -", "lane general 1 ", 1),
	"a method after a lane":         strings.Replace(golden[0].text, "lane general 1 -", "lane general 1 -\nmethod task work 5", 1),
	"a method of another kind":      strings.Replace(golden[0].text, "lane general 1 -", "method task vdf 5\nlane general 1 -", 1),
	"work in 256 bits":              strings.Replace(golden[0].text, "lane general 1 -", "method task work 256\nlane general 1 -", 1),
	"work with a leading zero":      strings.Replace(golden[0].text, "lane general 1 -", "method task work 05\nlane general 1 -", 1),
	"work with a limit":             strings.Replace(golden[0].text, "lane general 1 -", "method task work 5 5\nlane general 1 -", 1),
	"a method with a space at last": strings.Replace(golden[0].text, "lane general 1 -", "method task work 5 \nlane general 1 -", 1),
	"a method in capitals":          strings.Replace(golden[0].text, "lane general 1 -", "method Task work 5\nlane general 1 -", 1),
	"an issuer without a key":       strings.Replace(golden[0].text, "lane general 1 -", "method club signed  5\nlane general 1 -", 1),
	"an issuer without a limit":     strings.Replace(golden[0].text, "lane general 1 -", "method club signed 00\nlane general 1 -", 1),
	"a limit of 2^32":               strings.Replace(golden[0].text, "lane general 1 -", "method club signed 00 4294967296\nlane general 1 -", 1),
	"a key beyond ASCII":            strings.Replace(golden[0].text, "lane general 1 -", "method club signed ä 5\nlane general 1 -", 1),
	"half a credential":             "arrive 5 0 0 " + t1 + " general task -",
	"a credential without evidence": "arrive 5 0 0 " + t1 + " general task - -",
	"a credential in capitals":      "arrive 5 0 0 " + t1 + " general task - AA",
	"a credential of half a byte":   "arrive 5 0 0 " + t1 + " general task - aaa",
	"a short nullifier":             "arrive 5 0 0 " + t1 + " general club " + h1[2:] + " 00",
	"evidence of 513 bytes":         "arrive 5 0 0 " + t1 + " general club " + h1 + " " + strings.Repeat("00", 513),
	"a credential of no method":     "merit 5 " + t1 + "  - 00",
	"a method with a dot":           "merit 5 " + t1 + " a.b - 00",
	"a merit of two credentials":    "merit 5 " + t1 + " a - 00 b - 00",
	"a merit of none":               "merit 5 " + t1,
	"a beat of no signature":        "beat 5 -",
	"a beat of two signatures":      "beat 5 00 00",
	"a ticket in capitals":          "skip 5 " + strings.ToUpper(t1) + " left",
	"a ticket of version 4":         "skip 5 0badcafe-0123-4123-8123-456789abcdef left",
	"a ticket of variant 0":         "skip 5 0badcafe-0123-8123-0123-456789abcdef left",
	"hex in capitals":               "amend 5 message " + strings.ToUpper(h1),
	"hex too short":                 "amend 5 message " + h1[2:],
	"hex of odd length":             "amend 5 message " + h1[1:],
	"hex too long":                  "amend 5 message " + h1 + "00",
	"a signature of nothing":        "draw 5 0  " + h1,
	"a signature too long":          "draw 5 0 " + strings.Repeat("00", 257) + " " + h1,
	"half a byte of signature":      "draw 5 0 0 " + h1,
	"two dashes":                    "draw 5 0 -- " + h1,
	"invalid UTF-8":                 strings.Replace(golden[0].text, "origin queue", "origin \xff", 1),
	"text beyond ASCII":             strings.Replace(golden[0].text, "origin queue", "origin ä", 1),
	"a control character":           strings.Replace(golden[0].text, "origin queue", "origin \x01", 1),
	"another format":                strings.Replace(golden[0].text, "room 1", "room 2", 1),
	"another VRF":                   strings.Replace(golden[0].text, "SSWU", "TAI", 1),
	"lines in another order":        strings.Replace(golden[0].text, "claim 30000\ngrace 86400000\nsession 600000", "session 600000\nclaim 30000\ngrace 86400000", 1),
	"a line twice":                  strings.Replace(golden[0].text, "\nclaim 30000", "\nclaim 30000\nclaim 30000", 1),
	"a line missing":                strings.Replace(golden[0].text, "\nclaim 30000", "", 1),
	"a line too many":               golden[0].text + "\nnote hello",
	"an empty line":                 strings.Replace(golden[0].text, "\nclaim", "\n\nclaim", 1),
	"Windows line ends":             strings.ReplaceAll(golden[0].text, "\n", "\r\n"),
	"spaces for newlines":           strings.ReplaceAll(golden[0].text, "\n", " "),
	"a byte order mark":             "\ufeff" + golden[0].text,
	"too long":                      strings.Replace(golden[0].text, "origin queue", "origin "+strings.Repeat("e", MaxEntrySize), 1),
}

func TestParseRefuses(t *testing.T) {
	for name, text := range notEntries {
		t.Run(name, func(t *testing.T) {
			if e := checkText(t, new(Parser), []byte(text)); e != nil {
				t.Errorf("parse %.80q: got %+v", text, e)
			}
		})
	}
}

// TestParseLongest parses an entry of exactly the maximum size.
func TestParseLongest(t *testing.T) {
	text := strings.Replace(golden[0].text, "origin ", "origin "+strings.Repeat("e", MaxEntrySize-len(golden[0].text)), 1)
	if checkText(t, new(Parser), []byte(text)) == nil {
		t.Error("the longest entry is refused")
	}
}

// TestParserReuse parses the golden entries in random order with one parser, with invalid ones in between: an
// entry stays valid until the next call, whatever was parsed before, and even if its text changes.
func TestParserReuse(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var p Parser
	for range 20_000 {
		g := golden[r.IntN(len(golden))]
		text := []byte(g.text)
		if r.IntN(3) == 0 {
			text = text[:r.IntN(len(text))]
			checkText(t, &p, text)
			continue
		}
		e, err := p.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		clear(text)
		if diff := cmp.Diff(g.entry, e); diff != "" {
			t.Fatalf("parse %q (-want +got):\n%s", g.text, diff)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	var p Parser
	for _, g := range golden {
		switch g.entry.(type) {
		case *Arrive, *Assign, *Admit, *Skip, *Call:
		default:
			continue
		}
		text := []byte(g.text)
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := p.Parse(text); err != nil {
				t.Error(err)
			}
		})
		if most := strings.Count(g.text, "vip") + strings.Count(g.text, "zzz"); int(allocations) > min(most, 1) && !strings.Contains(g.text, "club") {
			t.Errorf("parse %q: %v allocations, only a lane other than general may have one", g.text, allocations)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, g := range golden {
		f.Add([]byte(g.text))
	}
	var used Parser
	f.Fuzz(func(t *testing.T, text []byte) {
		e := checkText(t, &used, text)
		if fresh, _ := ParseEntry(text); !cmp.Equal(e, fresh) {
			t.Errorf("parse %q: a used parser and a fresh one differ:\n%s", text, cmp.Diff(fresh, e))
		}
	})
}
