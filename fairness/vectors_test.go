package fairness

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/vrf"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorsFile = "testdata/vectors.json"

// vectors is the shape of testdata/vectors.json, for a second implementation
// in any language. Bytes are lower-case hex.
type vectors struct {
	About     string            `json:"about"`
	Tickets   []ticketVector    `json:"tickets"`
	Entries   []string          `json:"entries"`     // texts of the grammar
	Refused   []string          `json:"not_entries"` // texts that do not match it
	Alphas    []alphaVector     `json:"alphas"`
	Seeds     []seedVector      `json:"seeds"`
	Shuffles  []shuffleVector   `json:"shuffles"`
	Deals     []dealVector      `json:"deals"`
	Schedules []*scheduleVector `json:"schedules"`
	Room      roomVector        `json:"room"`
	// Witnessed is a room with a beacon and two witnesses.
	Witnessed roomVector `json:"witnessed_room"`
	// Lanes is a room with three lanes.
	Lanes roomVector `json:"lanes_room"`
	// Seats is a room with parties and a number of seats.
	Seats roomVector `json:"seats_room"`
	// Door is a room with three methods, of which its two lanes need one each.
	Door roomVector `json:"door_room"`
	// Turns is a room in which called tickets get more time, and revoked ones their places back.
	Turns roomVector `json:"turns_room"`
	// Slots is a room with three slots, two lanes, and a method that gives a lot.
	Slots roomVector `json:"slots_room"`
}

type ticketVector struct {
	Origin string `json:"origin"`
	Secret string `json:"secret"`
	Ticket string `json:"ticket"`
	Pass   string `json:"pass"`
}

type alphaVector struct {
	RoomHash string      `json:"room_hash"`
	Window   WindowIndex `json:"window"`
	Lots     []uint32    `json:"lots"`
	Size     uint64      `json:"size"`
	Root     string      `json:"root"`
	Alpha    string      `json:"alpha"`
}

type seedVector struct {
	Alpha     string `json:"alpha"`
	Beta      string `json:"beta"`
	Round     uint64 `json:"round"`
	Signature string `json:"signature"`
	Seed      string `json:"seed"`
}

type shuffleVector struct {
	Seed   string   `json:"seed"`
	Lane   Lane     `json:"lane"`
	Lots   uint32   `json:"lots"`
	Order  []uint32 `json:"order,omitempty"` // of a few lots
	SHA256 string   `json:"sha256"`          // of the order, as uint32 little-endian
}

type dealVector struct {
	Seed   string      `json:"seed"`
	Lane   Lane        `json:"lane"`
	Lots   []uint32    `json:"lots"`   // by slot
	Filled []uint32    `json:"filled"` // with empty lots
	Line   [][2]uint32 `json:"line"`   // slot and number of each lot
}

type scheduleVector struct {
	Rules  []ruleVector `json:"rules"`
	Closes Time         `json:"closes"`
	At     []atVector   `json:"at"`
}

type ruleVector struct {
	From   Time   `json:"from"`
	Length Millis `json:"length"`
}

type atVector struct {
	Time   Time          `json:"time"`
	Window *windowVector `json:"window"` // null: none
}

type windowVector struct {
	Index WindowIndex `json:"index"`
	From  Time        `json:"from"`
	To    Time        `json:"to"`
}

// roomVector is the transcript of a room, and invalid entries for some of its places.
type roomVector struct {
	VRFKey   string            `json:"vrf_private_key"`
	RoomHash string            `json:"room_hash"`
	Entries  []string          `json:"entries"`
	Draws    []drawVector      `json:"draws"`
	Lines    map[Lane][]string `json:"lines"` // tickets by position, of each lane; "": nobody has it
	Root     string            `json:"root"`  // of all entries
	Breaking []violationVector `json:"violations"`
}

type drawVector struct {
	Window WindowIndex       `json:"window"`
	Alpha  string            `json:"alpha"`
	Beta   string            `json:"beta"`
	Seed   string            `json:"seed"`
	Orders map[Lane][]uint32 `json:"orders"` // seqs by place, in a window of one slot
}

type violationVector struct {
	After int    `json:"after"` // number of earlier entries
	Entry string `json:"entry"`
	Rule  Rule   `json:"rule"`
}

// realOracle is a real log with VRF and witnesses, using the log's reference code.
type realOracle struct {
	hashes []tlog.Hash
	origin string
}

func (o *realOracle) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, o.hashes[i])
	}
	return list, nil
}

func (o *realOracle) add(n int, text []byte) error {
	stored, err := tlog.StoredHashes(int64(n), text, o)
	o.hashes = append(o.hashes, stored...)
	return err
}

func (o *realOracle) Root() [HashSize]byte {
	n := int64(0)
	for tlog.StoredHashCount(n) < int64(len(o.hashes)) {
		n++
	}
	root, err := tlog.TreeHash(n, o)
	if err != nil {
		panic(err)
	}
	return root
}

func (o *realOracle) VerifyProof(key [PublicKeySize]byte, alpha []byte, proof [ProofSize]byte) ([BetaSize]byte, error) {
	public, err := vrf.NewPublicKey(key[:])
	if err != nil {
		return [BetaSize]byte{}, err
	}
	return public.Verify(alpha, proof[:])
}

func (o *realOracle) VerifyRound(b *Beacon, round uint64, signature []byte) error {
	return b.Verify(round, signature)
}

func (o *realOracle) VerifyCredential(v *credential.Verifier, s credential.Subject, c credential.Credential) error {
	return v.Verify(s, c)
}

// story writes the room of the vectors.
type story struct {
	t *testing.T
	State
	oracle realOracle
	key    *vrf.PrivateKey
	out    roomVector
}

func (s *story) must(e Entry) {
	s.t.Helper()
	text := AppendEntry(nil, e)
	if err := s.Apply(e, &s.oracle); err != nil {
		s.t.Fatalf("%q: %v", text, err)
	}
	if err := s.oracle.add(len(s.out.Entries), text); err != nil {
		s.t.Fatal(err)
	}
	s.out.Entries = append(s.out.Entries, string(text))
}

func (s *story) refuse(rule Rule, e Entry) {
	s.t.Helper()
	text := AppendEntry(nil, e)
	if _, err := ParseEntry(text); err != nil {
		s.t.Fatal(err)
	}
	var v *Violation
	if err := s.Apply(e, &s.oracle); !errors.As(err, &v) || v.Rule != rule {
		s.t.Fatalf("%q: got %v, want a violation of rule %s", text, err, rule)
	}
	s.out.Breaking = append(s.out.Breaking, violationVector{len(s.out.Entries), string(text), rule})
}

func (s *story) join(at Time, visitors ...int) {
	s.t.Helper()
	for _, n := range visitors {
		e, ok := s.NextArrive(at, NewTicket(s.policy.Origin, vectorSecret(n)), General)
		if !ok {
			s.t.Fatalf("no window at %d", at)
		}
		s.must(&e)
	}
}

func vectorSecret(n int) [SecretSize]byte { return sha256.Sum256(fmt.Append(nil, "visitor ", n)) }

func (s *story) settle(at Time) {
	s.t.Helper()
	f, alpha, ok := s.NextFreeze(at, s.oracle.Root())
	if !ok {
		s.t.Fatalf("no freeze at %d", at)
	}
	proof, beta := s.key.Prove(alpha)
	f.Proof = [ProofSize]byte(proof)
	s.wrongFreezes(*f)
	s.must(f)
	d, _ := s.NextDraw(at, nil)
	bad := *d
	bad.Seed[0] ^= 1
	s.refuse(RuleSeed, &bad)
	bad = *d
	bad.Window++
	s.refuse(RuleDraw, &bad)
	s.draw(d, alpha, beta)
	for e, ok := s.NextAssign(); ok; e, ok = s.NextAssign() {
		if wrong := e; e.Position == s.lanes.all[0].parts[s.windows.drawn-1].first {
			wrong.Ticket = s.at(&s.lanes.all[0], e.Position+1).ticket
			s.refuse(RuleAssign, &wrong)
			wrong = e
			wrong.Lane = "vip"
			s.refuse(RuleLane, &wrong)
		}
		s.assign(&e)
	}
}

// draw applies a draw, and records it.
func (s *story) draw(d *Draw, alpha []byte, beta [BetaSize]byte) {
	s.t.Helper()
	w := &s.windows.all[s.windows.drawn]
	lots := w.freezes()
	s.must(d)
	v := drawVector{d.Window, hex.EncodeToString(alpha), hex.EncodeToString(beta[:]), hex.EncodeToString(d.Seed[:]), map[Lane][]uint32{}}
	for i := range s.lanes.all {
		if len(lots) == len(s.lanes.all) {
			v.Orders[s.lanes.all[i].name] = Shuffle(d.Seed, s.lanes.all[i].name, lots[i])
		}
	}
	s.out.Draws = append(s.out.Draws, v)
}

// assign applies an assignment, and records it.
func (s *story) assign(e *Assign) {
	s.t.Helper()
	s.must(e)
	if s.out.Lines == nil {
		s.out.Lines = map[Lane][]string{}
	}
	for Position(len(s.out.Lines[e.Lane]))+1 < e.Position {
		s.out.Lines[e.Lane] = append(s.out.Lines[e.Lane], "")
	}
	s.out.Lines[e.Lane] = append(s.out.Lines[e.Lane], e.Ticket.String())
}

func (s *story) wrongFreezes(f Freeze) {
	bad := f
	bad.Lots = []uint32{f.Lots[0] - 1}
	s.refuse(RuleFreeze, &bad)
	bad = f
	bad.Root[0] ^= 1
	s.refuse(RuleFreeze, &bad)
	bad = f
	bad.Proof[80] ^= 1
	s.refuse(RuleProof, &bad)
}

// tell plays the room: eight arrivals in the first window, none in the second, and four in the third, whose
// rule was added by an amendment.
func (s *story) tell(p Policy) {
	place := func(n Position) Ticket { return s.at(&s.lanes.all[0], n).ticket }
	admit := func(at Time, n Position) *Admit { return &Admit{at, place(n), NewPassID(p.Origin, place(n))} }
	open, start := p.Opens, p.Starts

	s.refuse(RulePolicy, &End{p.Created})
	broken := p
	broken.Claim = 0
	s.refuse(RulePolicy, &Room{broken})
	s.must(&Room{p})
	s.refuse(RulePolicy, &Room{p})
	s.refuse(RuleArrival, &Arrive{open - 1, 0, 0, NewTicket(p.Origin, vectorSecret(1)), General, 0, nil})
	s.join(open, 1, 2)
	s.refuse(RuleTicket, &Arrive{open, 0, 2, NewTicket(p.Origin, vectorSecret(1)), General, 0, nil})
	s.refuse(RuleArrival, &Arrive{open, 0, 3, NewTicket(p.Origin, vectorSecret(3)), General, 0, nil})
	s.refuse(RuleLane, &Arrive{open, 0, 2, NewTicket(p.Origin, vectorSecret(3)), "vip", 0, nil})
	s.join(open+1234, 3)
	s.refuse(RuleTime, &Arrive{open + 1233, 0, 3, NewTicket(p.Origin, vectorSecret(4)), General, 0, nil})
	s.refuse(RuleCredential, s.merit(open+1234, NewTicket(p.Origin, vectorSecret(3)), credential.Credential{Method: "club", Evidence: []byte{1}}))
	s.refuse(RuleCredential, &Arrive{open + 1234, 0, 3, NewTicket(p.Origin, vectorSecret(4)), General, 0, []credential.Credential{{Method: "club", Evidence: []byte{1}}}})
	s.must(&Amend{Time: open + 5000, Change: ChangeMessage, Message: sha256.Sum256([]byte("Doors open at nine."))})
	s.refuse(RuleAmend, &Amend{Time: open + 5000, Change: ChangeOpen}) // three are in line
	s.join(open+59_999, 4, 5, 6, 7, 8)
	s.refuse(RuleFreeze, &Amend{Time: start, Change: ChangeMessage}) // the freeze comes first
	s.refuse(RuleFreeze, &Arrive{start, 1, 0, NewTicket(p.Origin, vectorSecret(9)), General, 0, nil})
	s.settle(start)

	s.refuse(RuleOutflow, &Call{start, []Position{2}})
	s.must(&Call{start, []Position{1}})
	s.must(&Call{start + 2000, []Position{3}})
	s.refuse(RuleCall, &Call{start + 2000, []Position{3}})
	s.refuse(RuleAdmission, admit(start+2000, 4))
	s.must(admit(start+2500, 2))
	s.refuse(RuleAdmission, admit(start+2500, 2))
	s.must(&Skip{start + 3000, place(5), Left})
	s.refuse(RuleSkip, &Skip{start + 3000, place(3), NoShow})
	s.refuse(RuleExtend, &Extend{start + 3000, place(3)}) // the policy has no extensions
	s.refuse(RuleAmend, &Amend{Time: start + 4000, Change: ChangeResume})
	s.must(&Amend{Time: start + 4000, Change: ChangePause}) // the saved credit is worth two calls
	s.refuse(RuleCall, &Call{start + 5000, []Position{4}})
	s.refuse(RuleAmend, &Amend{Time: start + 5000, Change: ChangeWindows, Closes: Never, Windows: []WindowRule{{start + 29_999, 20_000}}})
	s.refuse(RuleAmend, &Amend{Time: start + 20_001, Change: ChangeWindows, Closes: start + 90_000, Windows: []WindowRule{{start + 30_000, 20_000}}})
	s.must(&Amend{Time: start + 5000, Change: ChangeWindows, Closes: start + 90_000, Windows: []WindowRule{{start + 30_000, 20_000}}})
	s.must(&Amend{Time: start + 24_000, Change: ChangeResume})
	s.must(&Beat{Time: start + 28_000})
	s.refuse(RuleAdmission, admit(start+30_000, 1)) // its ten seconds are over: four passed before the pause, six after it
	s.must(admit(start+31_999, 3))                  // called two seconds later
	s.refuse(RuleSkip, &Skip{start + 31_999, place(4), NoShow})
	s.must(&Skip{start + 32_000, place(1), NoShow})
	s.join(start+32_000, 9, 10)
	s.must(&Call{start + 32_000, []Position{8}}) // place 5 is given up and costs nothing
	s.must(admit(start+33_000, 4))
	s.must(&Skip{start + 34_000, place(6), Revoked})
	s.join(start+49_999, 11, 12)
	s.settle(start + 50_500)

	s.refuse(RuleAmend, &Amend{Time: start + 50_500, Change: ChangeOpen}) // four are drawn but not called
	s.must(&Amend{Time: start + 51_000, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 600, MaxActive: 50}})
	s.must(&Call{start + 51_000, []Position{12}})
	s.must(admit(start+52_000, 9))
	s.must(hold(start + 52_000))
	s.refuse(RuleAmend, hold(start+53_000))
	s.refuse(RuleAdmission, admit(start+53_000, 12))
	s.must(pause(start + 53_000)) // called visitors may claim again
	s.refuse(RuleAmend, pause(start+54_000))
	s.must(admit(start+54_000, 12))
	s.must(hold(start + 54_000))
	s.must(resume(start + 55_000))
	s.refuse(RuleSkip, &Skip{start + 64_000, place(10), NoShow}) // five of the seconds in which nothing was written count
	s.must(&Beat{Time: start + 60_000})
	s.refuse(RuleSkip, &Skip{start + 63_999, place(10), NoShow}) // the clock stood still for three seconds
	s.must(&Skip{start + 64_000, place(10), NoShow})
	s.must(&Amend{Time: start + 65_000, Change: ChangeMessage})
	s.refuse(RuleAmend, &Amend{Time: start + 66_000, Change: ChangeShut})
	s.must(&Amend{Time: start + 66_000, Change: ChangeOpen})
	s.refuse(RuleAmend, &Amend{Time: start + 66_000, Change: ChangeOpen})
	s.must(&Tell{Time: start + 67_000, Subject: TellUnguarded, From: start + 66_000, Until: start + 67_000, Count: 7})
	s.refuse(RuleTime, &Tell{Time: start + 66_999, Subject: TellStock, Name: "stalls", Count: 40})
	s.must(&Tell{Time: start + 67_000, Subject: TellStock, Name: "stalls", Count: 40})
	s.must(&Tell{Time: start + 67_000, Subject: TellPrice, Name: "stalls", Min: 4500, Max: 9000, Currency: "EUR"})
	s.must(&Tell{Time: start + 67_000, Subject: TellRefused, Name: "rate", From: start, Until: start + 60_000, Count: 3})
	s.must(&Tell{Time: start + 67_000, Subject: TellAuto, Name: "slow-site"})
	s.must(&Amend{Time: start + 67_000, Change: ChangeOutflow, Outflow: Outflow{PerMinute: 300, MaxActive: 50}})
	s.must(&Amend{Time: start + 68_000, Change: ChangeShut})
	s.must(pause(start + 69_000))
	s.refuse(RuleAmend, &Amend{Time: start + 69_000, Change: ChangeOpen})
	s.must(&End{start + 90_000})
	s.refuse(RuleEnd, &Tell{Time: start + 90_000, Subject: TellStock, Name: "stalls"})
	s.refuse(RuleEnd, &End{start + 90_000})
}

func vectorPolicy(t *testing.T, key *vrf.PrivateKey) Policy {
	p := testPolicy()
	p.Origin = "queue.example.com/r/vectors"
	seed := sha256.Sum256([]byte("log key of the vectors"))
	vkey, err := note.NewEd25519VerifierKey(p.Origin, ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	p.LogKey, p.VRFKey = vkey, [PublicKeySize]byte(key.PublicKey().Bytes())
	p.Closes = p.Starts + 60*second
	p.Windows = []WindowRule{{p.Opens, 60_000}, {p.Starts, 30_000}}
	p.Outflow = Outflow{PerMinute: 60, MaxActive: 100}
	p.Claim, p.Grace = 10_000, 5000
	return p
}

func makeRoom(t *testing.T) roomVector {
	secret := sha256.Sum256([]byte("vrf key 1 of the vectors"))
	key, err := vrf.NewPrivateKey(secret[:])
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, key: key}
	s.out.VRFKey = hex.EncodeToString(secret[:])
	s.tell(vectorPolicy(t, key))
	root := s.oracle.Root()
	s.out.Root, s.out.RoomHash = hex.EncodeToString(root[:]), hex.EncodeToString(s.roomHash[:])
	want := Counts{Arrivals: 12, Drawn: 12, Assigned: 12, Called: 12, Admitted: 5, NoShows: 2, Left: 1, Revoked: 1, Waiting: 3, Windows: 2, Amends: 14, Seats: 12, Sold: 5, Held: 3}
	if got := s.Counts(); got != want {
		t.Errorf("counts of the room %+v, want %+v", got, want)
	}
	return s.out
}

func makeVectors(t *testing.T) *vectors {
	v := &vectors{
		About: "Vectors of the Proofline rules, version 1, see RULES.md. Bytes are lower-case hex, times milliseconds since the Unix epoch.",
		Room:  makeRoom(t), Witnessed: makeWitnessedRoom(t), Lanes: makeLanesRoom(t), Seats: makeSeatsRoom(t), Door: makeDoorRoom(t), Turns: makeTurnsRoom(t), Slots: makeSlotsRoom(t),
	}
	for _, origin := range []string{"queue.example.com/r/vectors", "a", strings.Repeat("long.", 51)} {
		for _, secret := range [][SecretSize]byte{{}, vectorSecret(1), [SecretSize]byte(bytes.Repeat([]byte{0xff}, 32))} {
			ticket := NewTicket(origin, secret)
			v.Tickets = append(v.Tickets, ticketVector{origin, hex.EncodeToString(secret[:]), ticket.String(), NewPassID(origin, ticket).String()})
		}
	}
	for _, g := range golden {
		v.Entries = append(v.Entries, g.text)
	}
	for _, name := range slices.Sorted(maps.Keys(notEntries)) {
		if text := notEntries[name]; utf8.ValidString(text) && len(text) < MaxEntrySize {
			v.Refused = append(v.Refused, text)
		}
	}
	for _, f := range []*Freeze{{Lots: []uint32{0}}, {Window: 1, Lots: []uint32{3, 0, 2}, Size: 9}, {Window: 7, Lots: []uint32{1<<32 - 1}, Size: 1<<53 - 1, Root: hash1}} {
		alpha := hex.EncodeToString(Alpha(hash1, f))
		v.Alphas = append(v.Alphas, alphaVector{hex.EncodeToString(hash1[:]), f.Window, f.Lots, f.Size, hex.EncodeToString(f.Root[:]), alpha})
		for _, sig := range [][]byte{nil, {1, 2, 3}} {
			seed := NewSeed(Alpha(hash1, f), hash1, uint64(len(sig)), sig)
			v.Seeds = append(v.Seeds, seedVector{alpha, hex.EncodeToString(hash1[:]), uint64(len(sig)), hex.EncodeToString(sig), hex.EncodeToString(seed[:])})
		}
	}
	for _, n := range []uint32{0, 1, 2, 3, 10, 100, 1000, 100_000} {
		for _, lane := range []Lane{General, "a"} {
			v.Shuffles = append(v.Shuffles, makeShuffle(Seed(hash1), lane, n))
		}
	}
	for _, lots := range [][]uint32{{3}, {2, 2}, {5, 0, 2, 9}, {0, 0, 0}, {0, 1}} {
		deal := dealVector{Seed: hex.EncodeToString(hash1[:]), Lane: "a", Lots: lots, Filled: Fill(lots), Line: [][2]uint32{}}
		for _, lot := range Deal(Seed(hash1), "a", lots) {
			deal.Line = append(deal.Line, [2]uint32{uint32(lot.Slot), lot.Seq})
		}
		v.Deals = append(v.Deals, deal)
	}
	v.Schedules = []*scheduleVector{
		makeSchedule(1_000_000, WindowRule{100_000, 60_000}, WindowRule{160_000, 10_000}, WindowRule{163_000, 100_000}),
		makeSchedule(Never, WindowRule{0, 100}, WindowRule{Never - 1000, MaxWindow}),
	}
	return v
}

func makeShuffle(seed Seed, lane Lane, n uint32) shuffleVector {
	order := Shuffle(seed, lane, n)
	var b []byte
	for _, lot := range order {
		b = binary.LittleEndian.AppendUint32(b, lot)
	}
	sum := sha256.Sum256(b)
	v := shuffleVector{Seed: hex.EncodeToString(seed[:]), Lane: lane, Lots: n, SHA256: hex.EncodeToString(sum[:])}
	if n <= 100 {
		v.Order = order
	}
	return v
}

func makeSchedule(closes Time, rules ...WindowRule) *scheduleVector {
	v := &scheduleVector{Closes: closes}
	s := NewSchedule(&Policy{Windows: rules, Closes: closes})
	times := []Time{0, closes - 1, closes}
	for _, r := range rules {
		v.Rules = append(v.Rules, ruleVector(r))
		for _, at := range []Time{r.From - 1, r.From, r.From + 1, r.From + Time(r.Length) - 1, r.From + Time(r.Length)} {
			if at >= 0 && at <= closes {
				times = append(times, at)
			}
		}
	}
	slices.Sort(times)
	for _, at := range slices.Compact(times) {
		one := atVector{Time: at}
		if w, ok := s.At(at); ok {
			one.Window = (*windowVector)(&w)
		}
		v.At = append(v.At, one)
	}
	return v
}

// TestVectors compares the package's output with the frozen vectors, byte for byte. Run it with -update only
// for a new version of the rules.
func TestVectors(t *testing.T) {
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(makeVectors(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		at := 0
		for at < min(len(want), got.Len()) && want[at] == got.Bytes()[at] {
			at++
		}
		t.Errorf("%s differs from byte %d on: %.200q, now %.200q", vectorsFile, at, want[max(0, at-80):], got.Bytes()[max(0, at-80):])
	}
}

func readVectors(t *testing.T) *vectors {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	v := &vectors{}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVectorsReplayed reads the frozen file like a second implementation: the transcripts are accepted entry
// by entry, and each violation is refused at its index.
func TestVectorsReplayed(t *testing.T) {
	v, rules := readVectors(t), map[Rule]bool{}
	v.Room.replay(t, rules)
	v.Witnessed.replay(t, rules)
	v.Lanes.replay(t, rules)
	v.Seats.replay(t, rules)
	v.Door.replay(t, rules)
	v.Turns.replay(t, rules)
	v.Slots.replay(t, rules)
	for _, rule := range []Rule{
		RulePolicy, RuleTime, RuleEnd, RuleArrival, RuleTicket, RuleLane, RuleCredential, RuleNullifier, RuleMerit, RuleFreeze, RuleProof,
		RuleDraw, RuleBeacon, RuleWitness, RuleSeed, RuleAssign, RuleCall, RuleOutflow, RuleSeats, RuleAdmission, RuleSkip, RuleAmend,
	} {
		if !rules[rule] {
			t.Errorf("no vector breaks rule %s", rule)
		}
	}
}

// replay records the rules that the violations break.
func (v *roomVector) replay(t *testing.T, rules map[Rule]bool) {
	s, oracle := &State{}, &realOracle{}
	var entries []Entry
	for i := 0; i <= len(v.Entries); i++ {
		for _, bad := range v.Breaking {
			if bad.After != i {
				continue
			}
			e, err := ParseEntry([]byte(bad.Entry))
			if err != nil {
				t.Fatal(err)
			}
			var violated *Violation
			if err := s.Apply(e, oracle); !errors.As(err, &violated) || violated.Rule != bad.Rule {
				t.Errorf("after %d entries %q: got %v, want a violation of rule %s", i, bad.Entry, err, bad.Rule)
			}
			rules[bad.Rule] = true
		}
		if i == len(v.Entries) {
			break
		}
		e, err := ParseEntry([]byte(v.Entries[i]))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(e, oracle); err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		if room, ok := e.(*Room); ok {
			oracle.origin = room.Origin
		}
		if err := oracle.add(i, []byte(v.Entries[i])); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if root := oracle.Root(); hex.EncodeToString(root[:]) != v.Root {
		t.Errorf("root %x, want %s", root, v.Root)
	}
	now := s.Now()
	c := recountOf(entries, entries, now)
	c.check(t, s, s.Size(), now)
	for name, line := range c.lines {
		for i, ticket := range line {
			if got := slices.Concat(v.Lines[name], make([]string, len(line)))[i]; ticket != (Ticket{}) && got != ticket.String() || ticket == (Ticket{}) && got != "" {
				t.Errorf("place %d in lane %s is %q, want %v", i+1, name, got, ticket)
			}
		}
	}
}
