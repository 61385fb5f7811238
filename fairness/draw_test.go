package fairness

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAlphaByDefinition(t *testing.T) {
	f := &Freeze{
		Time: 1, Window: 0x0102030405060708, Lots: []uint32{0x0a0b0c0d}, Size: 0x1112131415161718,
		Root: [HashSize]byte{0: 0xee, 31: 0xff}, Round: 9, Proof: [ProofSize]byte{7},
	}
	want := append([]byte("proofline/draw/v1\x00"), hash1[:]...)
	want = append(want, unhex(t, "0102030405060708"+"000000000a0b0c0d"+"1112131415161718")...)
	want = append(want, f.Root[:]...)
	if got := Alpha(hash1, f); !slices.Equal(got, want) || len(got) != 106 {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestNewSeedByDefinition(t *testing.T) {
	alpha, beta := []byte("alpha"), [BetaSize]byte{1, 31: 2}
	for _, tc := range []struct {
		round     uint64
		signature []byte
		tail      string // uint64(round) || SHA-256(signature)
	}{
		{0, nil, "0000000000000000" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{0x0102030405060708, []byte("abc"), "0102030405060708" + "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	} {
		in := append([]byte("proofline/seed/v1\x00alpha"), beta[:]...)
		want := Seed(sha256.Sum256(append(in, unhex(t, tc.tail)...)))
		if got := NewSeed(alpha, beta, tc.round, tc.signature); got != want {
			t.Errorf("round %d: got %x, want %x", tc.round, got, want)
		}
	}
}

// reference is a second implementation of the shuffle, from the words of RULES.md, with the standard
// library's SHAKE256 and four bytes at a time.
type reference struct{ stream io.Reader }

func newReference(seed Seed, lane Lane) reference {
	x := sha3.NewSHAKE256()
	fmt.Fprintf(x, "proofline/shuffle/v1%c%s%s", 0, seed[:], lane)
	return reference{x}
}

func (r reference) below(m uint64) uint64 {
	for {
		var b [4]byte
		if _, err := io.ReadFull(r.stream, b[:]); err != nil {
			panic(err)
		}
		word := uint64(b[0]) + uint64(b[1])<<8 + uint64(b[2])<<16 + uint64(b[3])<<24
		if whole := 1 << 32 / m * m; word < whole {
			return word % m
		}
	}
}

func (r reference) shuffle(n int) []uint32 {
	lots := make([]uint32, n)
	for i := range lots {
		lots[i] = uint32(i)
	}
	for left := n; left > 1; left-- {
		k := r.below(uint64(left))
		lots[left-1], lots[k] = lots[k], lots[left-1]
	}
	return lots
}

func TestShuffleAgreesWithReference(t *testing.T) {
	sizes := []int{1023, 1024, 1025, 1026, 2049, 5000, 100_000}
	for n := range 200 {
		sizes = append(sizes, n)
	}
	for _, n := range sizes {
		seed := Seed(sha256.Sum256(fmt.Append(nil, n)))
		for _, lane := range []Lane{General, "a"} {
			got, want := Shuffle(seed, lane, uint32(n)), newReference(seed, lane).shuffle(n)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%d lots of lane %s (-reference +got):\n%.2000s", n, lane, diff)
			}
		}
	}
}

// TestWordsRejection draws numbers below limits for which up to half of all words are rejected, which no
// realistic shuffle does.
func TestWordsRejection(t *testing.T) {
	for _, m := range []uint32{1, 2, 3, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1} {
		w, r := newWords(Seed{1}, General), newReference(Seed{1}, General)
		for i := range 5000 {
			if got, want := uint64(w.below(m)), r.below(uint64(m)); got != want {
				t.Fatalf("number %d below %d: got %d, want %d", i, m, got, want)
			}
		}
	}
}

// TestWordsLimit draws below the first word itself: the values below it are the last complete range, so this
// word is the first to be rejected.
func TestWordsLimit(t *testing.T) {
	tried := 0
	for k := range byte(20) {
		words := newReference(Seed{k}, General)
		first, second := words.below(1<<32), words.below(1<<32)
		if first <= 1<<31 || second >= first {
			continue
		}
		tried++
		if got := newWords(Seed{k}, General).below(uint32(first)); uint64(got) != second {
			t.Errorf("seed %d: got %d, want the second word %d", k, got, second)
		}
	}
	if tried == 0 {
		t.Error("no seed begins with a word to try")
	}
}

func TestShuffleIsAPermutation(t *testing.T) {
	for n := range uint32(300) {
		for k := range byte(5) {
			order := Shuffle(Seed{k}, General, n)
			slices.Sort(order)
			for i, lot := range order {
				if uint32(i) != lot {
					t.Fatalf("%d lots: %d is missing", n, i)
				}
			}
			if len(order) != int(n) {
				t.Fatalf("%d lots: got %d", n, len(order))
			}
		}
	}
}

// TestShuffleDependsOnEverything changes every bit of the seed, and the lane.
func TestShuffleDependsOnEverything(t *testing.T) {
	seen := map[string]string{}
	add := func(what string, order []uint32) {
		key := fmt.Sprint(order)
		if before, twice := seen[key]; twice {
			t.Errorf("%s shuffles as %s", what, before)
		}
		seen[key] = what
	}
	add("the seed", Shuffle(Seed{}, General, 100))
	add("another lane", Shuffle(Seed{}, "genera", 100))
	for bit := range HashSize * 8 {
		var seed Seed
		seed[bit/8] = 1 << (bit % 8)
		add(fmt.Sprintf("bit %d", bit), Shuffle(seed, General, 100))
	}
}

// chiSquare returns Pearson's statistic of counts that should all be equal.
func chiSquare(counts []int) (statistic float64) {
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	for _, c := range counts {
		statistic += (float64(c) - want) * (float64(c) - want) / want
	}
	return statistic
}

// TestShuffleIsUnbiased counts all orders of a few lots. The limits are the 0.9999 quantiles of chi-square
// with n!-1 degrees of freedom. The seeds are fixed, so this fails always or never.
func TestShuffleIsUnbiased(t *testing.T) {
	for _, tc := range []struct {
		n      uint32
		orders int
		limit  float64
	}{
		{2, 2, 15.137}, {3, 6, 25.745}, {4, 24, 57.075}, {5, 120, 185.086},
	} {
		counts := map[[5]uint32]int{}
		for i := range tc.orders * 500 {
			var key [5]uint32
			copy(key[:], Shuffle(Seed(sha256.Sum256(fmt.Append(nil, tc.n, i))), General, tc.n))
			counts[key]++
		}
		flat := make([]int, 0, tc.orders)
		for _, c := range counts {
			flat = append(flat, c)
		}
		if len(flat) != tc.orders {
			t.Errorf("%d lots: %d orders, want %d", tc.n, len(flat), tc.orders)
		}
		if statistic := chiSquare(flat); statistic > tc.limit {
			t.Errorf("%d lots: chi-square %.1f, want at most %.1f", tc.n, statistic, tc.limit)
		}
	}
}

// TestPlacesAreUnbiased counts the places of the first, a middle and the last of 50 arrivals: the moment of
// joining must not matter.
func TestPlacesAreUnbiased(t *testing.T) {
	const n, limit = 50, 94.6 // 0.9999 quantile with 49 degrees of freedom
	counts := map[uint32][]int{0: make([]int, n), 25: make([]int, n), n - 1: make([]int, n)}
	for i := range 50_000 {
		for place, lot := range Shuffle(Seed(sha256.Sum256(fmt.Append(nil, i))), General, n) {
			if c := counts[lot]; c != nil {
				c[place]++
			}
		}
	}
	for lot, c := range counts {
		if statistic := chiSquare(c); statistic > limit {
			t.Errorf("places of lot %d: chi-square %.1f, want at most %.1f", lot, statistic, limit)
		}
	}
}
