package audit

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

const vectorsFile = "testdata/vectors.json"

var update = flag.Bool("update", false, "write "+vectorsFile+" anew")

// vectors is testdata/vectors.json: the formats of FORMAT.md for readers in
// any language. Hashes are base64, other bytes hexadecimal.
type vectors struct {
	About       []string            `json:"about"`
	Origin      string              `json:"origin"`
	Seed        string              `json:"seed"` // of the Ed25519 key, RFC 8032
	VKey        string              `json:"vkey"`
	Leaves      []leafVector        `json:"leaves"`
	Roots       []rootVector        `json:"roots"`
	Inclusion   []inclusionVector   `json:"inclusion"`
	Consistency []consistencyVector `json:"consistency"`
	Checkpoints []checkpointVector  `json:"checkpoints"`
	Proofs      []proofVector       `json:"proofs"`
	TilePaths   []tilePathVector    `json:"tile_paths"`
	Tiles       []tilesVector       `json:"tiles"`
	Bundles     []bundleVector      `json:"bundles"`
	Refused     refusedVectors      `json:"refused"`
}

type leafVector struct {
	Entry string `json:"entry"`
	Hash  Hash   `json:"hash"`
}

type rootVector struct {
	Size int  `json:"size"`
	Root Hash `json:"root"`
}

type inclusionVector struct {
	Index int    `json:"index"`
	Size  int    `json:"size"`
	Path  []Hash `json:"path"`
}

type consistencyVector struct {
	Old  int    `json:"old"`
	Size int    `json:"size"`
	Path []Hash `json:"path"`
}

type checkpointVector struct {
	Size   int    `json:"size"`
	Text   string `json:"text"`
	Signed string `json:"signed"`
}

type proofVector struct {
	Index int    `json:"index"`
	Size  int    `json:"size"`
	Extra string `json:"extra"`
	Text  string `json:"text"`
}

type tilePathVector struct {
	Level int8   `json:"level"` // -1 means the number of entries
	Index uint64 `json:"index"`
	Width int    `json:"width"`
	Path  string `json:"path"`
}

// tilesVector lists the tiles that a copy of size Old needs to reach Size.
type tilesVector struct {
	Old   int      `json:"old"`
	Size  int      `json:"size"`
	Paths []string `json:"paths"`
}

type bundleVector struct {
	Entries []string `json:"entries"`
	Bundle  string   `json:"bundle"`
}

type refusedVectors struct {
	Checkpoints []string        `json:"checkpoints"`
	TilePaths   []string        `json:"tile_paths"`
	Proofs      []string        `json:"proofs"`
	Bundles     []refusedBundle `json:"bundles"`
}

type refusedBundle struct {
	Width  int    `json:"width"`
	Bundle string `json:"bundle"`
}

// makeVectors computes the vectors from the definitions of the RFC and of C2SP alone, with the standard
// library. It calls nothing that it tests.
func makeVectors() *vectors {
	v := &vectors{
		About: []string{
			"Vectors of audit/FORMAT.md: hashes are base64, entries, seed, extra and bundles are hexadecimal.",
			"Made by `go test ./audit -run TestVectors -update` from the definitions in RFC 6962 and C2SP, see vectors_test.go.",
			"Entry i of the log is the ASCII text \"entry i\", i decimal. Leaves adds a few that are not in it.",
			"The key is the one of RFC 8032, section 7.1, test 1.",
			"Refused lists what a strict reader does not accept.",
		},
		Origin: testOrigin,
		Seed:   hex.EncodeToString(testSeed),
	}
	var id string
	v.VKey, id = defineKey()
	v.defineTree()
	for _, size := range []int{0, 1, 13, 300} {
		text := fmt.Sprintf("%s\n%d\n%s\n", testOrigin, size, mth(leaves(size)))
		v.Checkpoints = append(v.Checkpoints, checkpointVector{size, text, defineNote(text, id)})
	}
	for _, p := range []struct {
		index, size int
		extra       string
	}{{0, 1, ""}, {12, 13, ""}, {5, 13, "any bytes"}, {257, 300, ""}} {
		text := "c2sp.org/tlog-proof@v1\n"
		if p.extra != "" {
			text += "extra " + base64.StdEncoding.EncodeToString([]byte(p.extra)) + "\n"
		}
		text += fmt.Sprintf("index %d\n", p.index)
		for _, h := range auditPath(p.index, leaves(p.size)) {
			text += h.String() + "\n"
		}
		text += "\n" + defineNote(fmt.Sprintf("%s\n%d\n%s\n", testOrigin, p.size, mth(leaves(p.size))), id)
		v.Proofs = append(v.Proofs, proofVector{p.index, p.size, hex.EncodeToString([]byte(p.extra)), text})
	}
	v.defineTiles()
	v.defineRefused()
	return v
}

// defineKey returns the vkey and the key id of the test key.
//
// https://c2sp.org/signed-note#verifier-keys
func defineKey() (vkey, id string) {
	public := ed25519.NewKeyFromSeed(testSeed).Public().(ed25519.PublicKey)
	sum := sha256.Sum256([]byte(testOrigin + "\n\x01" + string(public)))
	encoded := base64.StdEncoding.EncodeToString([]byte("\x01" + string(public)))
	return fmt.Sprintf("%s+%x+%s", testOrigin, sum[:4], encoded), string(sum[:4])
}

func defineNote(text, id string) string {
	signature := ed25519.Sign(ed25519.NewKeyFromSeed(testSeed), []byte(text))
	return text + "\n— " + testOrigin + " " + base64.StdEncoding.EncodeToString([]byte(id+string(signature))) + "\n"
}

func (v *vectors) defineTree() {
	for _, entry := range []string{"", "\x00", "entry 0", "entry 1", "entry 2", strings.Repeat("a", 55), strings.Repeat("b", 64), strings.Repeat("c", 300)} {
		v.Leaves = append(v.Leaves, leafVector{hex.EncodeToString([]byte(entry)), sha256.Sum256([]byte("\x00" + entry))})
	}
	for _, size := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 100, 255, 256, 257, 300, 1000, 65_536, 65_537, 70_000} {
		v.Roots = append(v.Roots, rootVector{size, mth(leaves(size))})
	}
	for _, p := range [][2]int{{0, 1}, {0, 2}, {1, 2}, {2, 3}, {0, 7}, {5, 7}, {6, 7}, {12, 13}, {256, 257}, {200, 300}, {65_536, 70_000}, {69_999, 70_000}} {
		v.Inclusion = append(v.Inclusion, inclusionVector{p[0], p[1], notNil(auditPath(p[0], leaves(p[1])))})
	}
	for _, p := range [][2]int{{1, 1}, {1, 2}, {3, 7}, {4, 7}, {6, 7}, {7, 7}, {13, 300}, {256, 257}, {256, 300}, {65_535, 70_000}} {
		v.Consistency = append(v.Consistency, consistencyVector{p[0], p[1], notNil(consistency(p[0], leaves(p[1])))})
	}
}

// notNil makes an empty path "[]" in JSON.
func notNil(path []Hash) []Hash { return append([]Hash{}, path...) }

// defineTiles writes out names and bundles that are short enough to check by eye.
func (v *vectors) defineTiles() {
	for _, c := range tilePaths {
		v.TilePaths = append(v.TilePaths, tilePathVector{c.tile.Level, c.tile.Index, c.tile.Width, c.path})
	}
	for _, c := range []struct {
		old, size int
		paths     string
	}{
		{0, 0, ""},
		{0, 1, "entries/000.p/1 0/000.p/1"},
		{0, 256, "entries/000 0/000 1/000.p/1"},
		{0, 300, "entries/000 entries/001.p/44 0/000 0/001.p/44 1/000.p/1"},
		{300, 300, ""},
		{299, 300, "entries/001.p/44 0/001.p/44"},
		{300, 513, "entries/001 entries/002.p/1 0/001 0/002.p/1 1/000.p/2"},
		{69_999, 70_000, "entries/273.p/112 0/273.p/112"},
		{65_535, 65_792, "entries/255 entries/256 0/255 0/256 1/000 1/001.p/1 2/000.p/1"},
	} {
		paths := []string{}
		for path := range strings.FieldsSeq(c.paths) {
			paths = append(paths, "tile/"+path)
		}
		v.Tiles = append(v.Tiles, tilesVector{c.old, c.size, paths})
	}
	for _, c := range []struct{ entries, bundle string }{
		{"656e7472792030", "0007 656e7472792030"},
		{"656e7472792030 656e7472792031", "0007 656e7472792030 0007 656e7472792031"},
		{"00 ff00ff", "0001 00 0003 ff00ff"},
		{strings.Repeat("aa", 300), "012c" + strings.Repeat("aa", 300)},
	} {
		v.Bundles = append(v.Bundles, bundleVector{strings.Fields(c.entries), strings.ReplaceAll(c.bundle, " ", "")})
	}
}

func (v *vectors) defineRefused() {
	root := base64.StdEncoding.EncodeToString(make([]byte, 32))
	v.Refused.Checkpoints = []string{
		"o\n1\n" + root, "o\n01\n" + root + "\n", "o\n+1\n" + root + "\n", "o\n0\n" + root + "\n", "o\n-1\n" + root + "\n",
		"\n1\n" + root + "\n", "o o\n1\n" + root + "\n", "o+o\n1\n" + root + "\n", "o\n1\n" + root[:42] + "B=\n", "o\n1\n" + root + "\nextension\n",
	}
	v.Refused.TilePaths = []string{
		"tile/0/0", "tile/0/000.p/0", "tile/0/000.p/256", "tile/0/000.p/01", "tile/0/x000/001", "tile/0/001/000",
		"tile/00/000", "tile/64/000", "tile/-1/000", "tile/data/000", "tile/8/0/000", "tile/entries/0/000", "/tile/0/000", "tile/0/000/",
	}
	const header = "c2sp.org/tlog-proof@v1\n"
	v.Refused.Proofs = []string{
		"", header, header + "index 1", header + "index 01\n\nc", header + "extra \nindex 1\n\nc", header + "extra eB==\nindex 1\n\nc",
		header + "index 1\nextra eA==\n\nc", header + "index 1\n" + root[:42] + "B=\n\nc", header + "index 1\r\n\r\nc", "c2sp.org/tlog-proof@v2\nindex 1\n\nc",
	}
	for width, bundle := range []string{"00", "000161ff", "0001610001", "00016100016200"} {
		v.Refused.Bundles = append(v.Refused.Bundles, refusedBundle{width, bundle})
	}
}

// TestVectors generates the vectors again and compares every byte of the file.
func TestVectors(t *testing.T) {
	var made bytes.Buffer
	encoder := json.NewEncoder(&made)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(makeVectors()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(vectorsFile, made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(vectorsFile); err != nil || !bytes.Equal(stored, made.Bytes()) {
		t.Errorf("%s is not what -update writes (%v)", vectorsFile, err)
	}
}

func readVectors(t *testing.T) *vectors {
	t.Helper()
	b, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVectorsOfTree compares the package with the stored vectors, as do all other tests in this file.
func TestVectorsOfTree(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.Leaves {
		if got := LeafHash(mustHex(c.Entry)); got != c.Hash {
			t.Errorf("leaf %.20s: %v, want %v", c.Entry, got, c.Hash)
		}
	}
	roots := map[int]Checkpoint{}
	for _, c := range v.Roots {
		var tree Tree
		if tree.Extend(leaves(c.Size)); tree.Root() != c.Root {
			t.Errorf("root of %d: %v, want %v", c.Size, tree.Root(), c.Root)
		}
		roots[c.Size] = Checkpoint{v.Origin, uint64(c.Size), c.Root}
	}
	for _, c := range v.Inclusion {
		if got, err := new(Tree).Extend(leaves(c.Size)).InclusionProof(uint64(c.Index)); err != nil || !slices.Equal(got, c.Path) {
			t.Errorf("%d of %d: %v (%v), want %v", c.Index, c.Size, got, err, c.Path)
		}
		if err := VerifyInclusion(roots[c.Size], uint64(c.Index), LeafHash(entryData(c.Index)), c.Path); err != nil {
			t.Error(err)
		}
	}
	for _, c := range v.Consistency {
		old := Checkpoint{v.Origin, uint64(c.Old), mth(leaves(c.Old))}
		if err := VerifyConsistency(old, roots[c.Size], c.Path); err != nil {
			t.Error(err)
		}
		all := leaves(c.Size)
		if got, err := ProveConsistency(t.Context(), fetcher(published(t, all, c.Size)), old, roots[c.Size]); err != nil || !slices.Equal(got, c.Path) {
			t.Errorf("%d to %d: %v (%v), want %v", c.Old, c.Size, got, err, c.Path)
		}
	}
}

func TestVectorsOfNotes(t *testing.T) {
	v := readVectors(t)
	signer, verifier := testKey(t, v.Origin, mustHex(v.Seed))
	if _, vkey, err := NewSigner(v.Origin, mustHex(v.Seed)); err != nil || vkey != v.VKey {
		t.Errorf("vkey %q (%v), want %q", vkey, err, v.VKey)
	}
	for _, c := range v.Checkpoints {
		want := Checkpoint{v.Origin, uint64(c.Size), mth(leaves(c.Size))}
		if want.Marshal() != c.Text {
			t.Errorf("checkpoint %q, want %q", want.Marshal(), c.Text)
		}
		if signed, err := SignCheckpoint(want, signer); err != nil || string(signed) != c.Signed {
			t.Errorf("signed %q (%v), want %q", signed, err, c.Signed)
		}
		if got, _, err := OpenCheckpoint([]byte(c.Signed), verifier); err != nil || got != want {
			t.Errorf("opened %+v (%v), want %+v", got, err, want)
		}
	}
	for _, c := range v.Proofs {
		p, err := ParseProof([]byte(c.Text))
		if err != nil || p.Index != uint64(c.Index) || !bytes.Equal(p.Extra, mustHex(c.Extra)) || string(p.Marshal()) != c.Text {
			t.Errorf("proof %q: %+v, %v", c.Text, p, err)
		}
		if head, err := p.Verify(LeafHash(entryData(c.Index)), verifier); err != nil || head.Size != uint64(c.Size) {
			t.Errorf("proof %q: %+v, %v", c.Text, head, err)
		}
	}
}

func TestVectorsOfTiles(t *testing.T) {
	v := readVectors(t)
	for _, c := range v.TilePaths {
		tile := Tile{c.Level, c.Index, c.Width}
		if got, err := ParseTilePath(c.Path); err != nil || got != tile || tile.Path() != c.Path {
			t.Errorf("%q: %+v (%v), want %+v", c.Path, got, err, tile)
		}
	}
	for _, c := range v.Tiles {
		paths := []string{}
		for tile := range TilesFrom(uint64(c.Old), uint64(c.Size)) {
			paths = append(paths, tile.Path())
		}
		if !slices.Equal(paths, c.Paths) {
			t.Errorf("from %d to %d: %v, want %v", c.Old, c.Size, paths, c.Paths)
		}
	}
	for _, c := range v.Bundles {
		entries := make([][]byte, len(c.Entries))
		for i := range entries {
			entries[i] = mustHex(c.Entries[i])
		}
		if got := bundle(t, entries...); hex.EncodeToString(got) != c.Bundle {
			t.Errorf("bundle %x, want %s", got, c.Bundle)
		}
		if got, err := splitAll(mustHex(c.Bundle), len(entries)); err != nil || !slices.EqualFunc(got, entries, bytes.Equal) {
			t.Errorf("bundle %s: %x, %v", c.Bundle, got, err)
		}
	}
}

func TestVectorsRefused(t *testing.T) {
	refused := readVectors(t).Refused
	for _, text := range refused.Checkpoints {
		if c, err := ParseCheckpoint(text); !errors.Is(err, ErrCheckpoint) {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	for _, path := range refused.TilePaths {
		if tile, err := ParseTilePath(path); !errors.Is(err, ErrTilePath) {
			t.Errorf("%q: %+v, %v", path, tile, err)
		}
	}
	for _, text := range refused.Proofs {
		if p, err := ParseProof([]byte(text)); !errors.Is(err, ErrProof) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	for _, c := range refused.Bundles {
		if entries, err := splitAll(mustHex(c.Bundle), c.Width); !errors.Is(err, ErrBundle) {
			t.Errorf("%s: %x, %v", c.Bundle, entries, err)
		}
	}
	if len(refused.Checkpoints)*len(refused.TilePaths)*len(refused.Proofs)*len(refused.Bundles) == 0 {
		t.Error("a list of refused inputs is empty")
	}
}

// TestFormatExamples checks that the examples of FORMAT.md are in the vectors.
func TestFormatExamples(t *testing.T) {
	format, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.ReplaceAll(string(format), "\n    ", "\n")
	v := readVectors(t)
	for name, text := range map[string]string{
		"vkey": v.VKey, "checkpoint": v.Checkpoints[2].Signed, "proof": v.Proofs[1].Text, "root": emptyRoot.String(),
	} {
		if !strings.Contains(shown, text) {
			t.Errorf("no %s %q in FORMAT.md", name, text)
		}
	}
}
