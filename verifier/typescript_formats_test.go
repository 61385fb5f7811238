package verifier_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier/ticket"
)

// reading has the second program read one text after the other. It answers "" if it refuses a text, and
// otherwise with what it has read.
const reading = `
import { readFileSync } from "node:fs";
import { parseBundle } from "./src/check/bundle.ts";
import { fromUtf8, utf8 } from "./src/check/bytes.ts";
import { openCheckpoint, parseCheckpoint, parseHash } from "./src/check/checkpoint.ts";
import { cosignedAt } from "./src/check/cosignature.ts";
import { parseDecimal } from "./src/check/decimal.ts";
import { parseEntry } from "./src/check/entry.ts";
import { FormatError, SignatureError } from "./src/check/errors.ts";
import { toHex } from "./src/check/hex.ts";
import { leafHash, verifyConsistency, verifyInclusion } from "./src/check/merkle.ts";
import { parseKey, parseNote, parseWitnessKey } from "./src/check/note.ts";
import { checkPlace } from "./src/check/place.ts";
import { parseProof } from "./src/check/proof.ts";
import { parseTilePath, splitBundle } from "./src/check/tiles.ts";

const head = ({ origin, size, root }) => origin + " " + size + " " + toHex(root);
const key = ({ name, id, publicKey }) => name + " " + toHex(id) + " " + toHex(publicKey);
const readers = {
  vkey: (text) => key(parseKey(fromUtf8(text))),
  witness: (text) => key(parseWitnessKey(fromUtf8(text))),
  note: (note, vkey) => head(openCheckpoint(note, parseKey(fromUtf8(vkey)))),
  form: (note) => head(parseCheckpoint(parseNote(note).text)),
  proof: (text) => {
    const { index, path, extra, checkpoint } = parseProof(text);
    return [index, toHex(extra), path.map(toHex).join(","), checkpoint.length].join(" ");
  },
  receipt: (text, vkey, entry) => {
    const { index, path, checkpoint } = parseProof(text);
    const { size, root } = openCheckpoint(utf8(checkpoint), parseKey(fromUtf8(vkey)));
    return verifyInclusion(index, leafHash(entry), size, root, path) ? "proven" : "";
  },
  growth: (text) => {
    const [from, to, before, after, ...proof] = fromUtf8(text).split(" ");
    const old = { size: parseDecimal(from, 1n << 64n), root: parseHash(before) };
    return verifyConsistency(old, { size: parseDecimal(to, 1n << 64n), root: parseHash(after) }, proof.map(parseHash)) ? "proven" : "";
  },
  cosignature: (cosignature, vkey, text) => {
    const at = cosignedAt(parseWitnessKey(fromUtf8(vkey)), parseCheckpoint(fromUtf8(text)), cosignature);
    return at === undefined ? "" : String(at < 2n ** 53n ? at : 2n ** 53n);
  },
  entry: (text) => parseEntry(text).kind,
  tile: (path) => Object.values(parseTilePath(fromUtf8(path))).join(" "),
  bundle: (bundle) => splitBundle(bundle.subarray(1), bundle[0] + 1).map(toHex).join(","),
  file: (file) => (parseBundle(file) ? "read" : ""),
  place: (file) => {
    const { visitor, evidence } = parseBundle(file);
    return checkPlace(visitor, evidence).map(({ reason }) => reason).join(" ");
  },
};
const answers = JSON.parse(readFileSync(0, "utf8")).map(({ kind, args }) => {
  try {
    return readers[kind](...args.map((arg) => new Uint8Array(Buffer.from(arg ?? "", "base64"))));
  } catch (failure) {
    if (failure instanceof FormatError || failure instanceof SignatureError) return "";
    return "crash: " + failure;
  }
});
process.stdout.write(JSON.stringify(answers));
`

// text is a text that both programs read.
type text struct {
	Kind string   `json:"kind"`
	Args [][]byte `json:"args"`
}

// readers parse each kind with this program and return its answer.
var readers = map[string]func(args [][]byte) (string, error){
	"vkey": func(a [][]byte) (string, error) {
		v, err := audit.ParseKey(string(a[0]))
		if err != nil {
			return "", err
		}
		typed, err := base64.StdEncoding.DecodeString(string(a[0])[len(v.Name())+10:])
		return fmt.Sprintf("%s %08x %x", v.Name(), v.KeyHash(), typed[1:]), err
	},
	"witness": func(a [][]byte) (string, error) {
		w, err := audit.ParseWitness(string(a[0]))
		return fmt.Sprintf("%s %08x %x", w.Name(), w.KeyHash(), w.Key), err
	},
	"note": func(a [][]byte) (string, error) {
		v, err := audit.ParseKey(string(a[1]))
		if err != nil {
			return "", err
		}
		c, _, err := audit.OpenCheckpoint(a[0], v)
		return headOf(c), err
	},
	"form": func(a [][]byte) (string, error) {
		c, err := audit.UnverifiedCheckpoint(a[0])
		return headOf(c), err
	},
	"proof": func(a [][]byte) (string, error) {
		p, err := audit.ParseProof(a[0])
		var path []string
		for _, h := range p.Path {
			path = append(path, hex.EncodeToString(h[:]))
		}
		return fmt.Sprintf("%d %x %s %d", p.Index, p.Extra, strings.Join(path, ","), utf16Len(string(p.Checkpoint))), err
	},
	"receipt": func(a [][]byte) (string, error) {
		p, err := audit.ParseProof(a[0])
		if err != nil {
			return "", err
		}
		v, err := audit.ParseKey(string(a[1]))
		if err != nil {
			return "", err
		}
		_, err = p.Verify(audit.LeafHash(a[2]), v)
		return "proven", err
	},
	"growth":      readGrowth,
	"cosignature": readCosignature,
	"entry": func(a [][]byte) (string, error) {
		e, err := fairness.ParseEntry(a[0])
		if err != nil {
			return "", err
		}
		return string(fairness.KindOf(e)), nil
	},
	"tile": func(a [][]byte) (string, error) {
		t, err := audit.ParseTilePath(string(a[0]))
		return fmt.Sprintf("%d %d %d", t.Level, t.Index, t.Width), err
	},
	"bundle": func(a [][]byte) (string, error) {
		var entries []string
		err := audit.SplitBundle(a[0][1:], int(a[0][0])+1, func(entry []byte) error {
			entries = append(entries, hex.EncodeToString(entry))
			return nil
		})
		return strings.Join(entries, ","), err
	},
	"file": func(a [][]byte) (string, error) {
		_, err := ticket.Parse(a[0])
		return "read", err
	},
	"place": func(a [][]byte) (string, error) {
		b, err := ticket.Parse(a[0])
		if err != nil {
			return "", err
		}
		var reasons []string
		for _, line := range ticket.Check(b, ticket.Trust{}) {
			reasons = append(reasons, string(line.Reason))
		}
		return strings.Join(reasons, " "), nil
	},
}

func headOf(c audit.Checkpoint) string { return fmt.Sprintf("%s %d %x", c.Origin, c.Size, c.Root[:]) }

func utf16Len(s string) (n int) {
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

func readGrowth(a [][]byte) (string, error) {
	var hashes []audit.Hash
	words := strings.Split(string(a[0]), " ")
	for _, word := range words[2:] {
		b, err := base64.StdEncoding.DecodeString(word)
		if err != nil || len(b) != sha256.Size || base64.StdEncoding.EncodeToString(b) != word {
			return "", fmt.Errorf("hash %q", word)
		}
		hashes = append(hashes, audit.Hash(b))
	}
	from, errFrom := strconv.ParseUint(words[0], 10, 64)
	to, errTo := strconv.ParseUint(words[1], 10, 64)
	if errFrom != nil || errTo != nil || fmt.Sprint(from, to) != words[0]+" "+words[1] {
		return "", fmt.Errorf("sizes %q", words[:2])
	}
	old, head := audit.Checkpoint{Origin: "o", Size: from, Root: hashes[0]}, audit.Checkpoint{Origin: "o", Size: to, Root: hashes[1]}
	return "proven", audit.VerifyConsistency(old, head, hashes[2:])
}

func readCosignature(a [][]byte) (string, error) {
	c, err := audit.ParseCheckpoint(string(a[2]))
	if err != nil {
		return "", err
	}
	at, err := c.CosignedAt(string(a[1]), audit.Cosignature(a[0]))
	return strconv.FormatInt(at, 10), err
}

// TestSecondProgramReads has both programs read the same texts: most differ from a valid one by one change,
// and some are made to be read differently. With PROOFLINE_CASES=N each kind has N of them.
func TestSecondProgramReads(t *testing.T) {
	cases := 1000
	if n, err := strconv.Atoi(os.Getenv("PROOFLINE_CASES")); err == nil {
		cases = n
	}
	random := rand.New(rand.NewPCG(13, uint64(cases)))
	seeds := seedTexts(t)
	var all []text
	for _, kind := range slices.Sorted(mapKeys(seeds)) {
		n := cases
		if kind == "place" {
			n /= 50 // with proofs of a VRF and a beacon
		}
		all = append(all, seeds[kind]...)
		for range n {
			all = append(all, changed(random, seeds[kind]))
		}
	}
	all = append(all, notesOnPurpose(t, random, cases)...)
	all = append(all, signaturesOnPurpose(t, random, cases)...)
	read, differ := map[string]int{}, 0
	for part := range slices.Chunk(all, 20_000) {
		var answers []string
		ask(t, reading, part, &answers)
		if len(answers) != len(part) {
			t.Fatalf("%d answers to %d texts", len(answers), len(part))
		}
		for i, c := range part {
			want, err := readers[c.Kind](c.Args)
			if err != nil {
				want = ""
			}
			if want != "" {
				read[c.Kind]++
			}
			if answers[i] != want {
				if differ++; differ <= 20 {
					t.Errorf("%s %q:\n%q here (%v)\n%q by the second program", c.Kind, c.Args, want, err, answers[i])
				}
			}
		}
	}
	t.Logf("%d texts, %d read differently; read at all: %v", len(all), differ, read)
	for kind := range readers {
		if read[kind] < 5 {
			t.Errorf("only %d texts of kind %s could be read", read[kind], kind)
		}
	}
}

func mapKeys(m map[string][]text) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func load(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// auditVectors is the part of audit/testdata/vectors.json that the tests use.
type auditVectors struct {
	Origin, Seed, VKey string
	Checkpoints        []struct{ Text, Signed string }
	Proofs             []struct {
		Index uint64
		Text  string
	}
	Roots []struct {
		Size uint64
		Root string
	}
	Consistent []struct {
		Old, Size uint64
		Path      []string
	} `json:"consistency"`
	Paths   []struct{ Path string } `json:"tile_paths"`
	Bundles []struct {
		Entries []string
		Bundle  string
	}
}

// seedTexts are valid texts of every kind: the vectors, and the examples of FORMAT.md.
func seedTexts(t *testing.T) map[string][]text {
	t.Helper()
	seeds := map[string][]text{}
	add := func(kind string, args ...string) {
		c := text{Kind: kind}
		for _, arg := range args {
			c.Args = append(c.Args, []byte(arg))
		}
		seeds[kind] = append(seeds[kind], c)
	}
	var v auditVectors
	load(t, "../audit/testdata/vectors.json", &v)
	add("vkey", v.VKey)
	for _, c := range v.Checkpoints {
		add("note", c.Signed, v.VKey)
		add("form", c.Signed)
	}
	for _, p := range v.Proofs {
		add("proof", p.Text)
		add("receipt", p.Text, v.VKey, fmt.Sprintf("entry %d", p.Index))
	}
	roots := map[uint64]string{}
	for _, r := range v.Roots {
		roots[r.Size] = r.Root
	}
	for _, c := range v.Consistent {
		if roots[c.Old] == "" || roots[c.Size] == "" {
			continue
		}
		add("growth", strings.Join(append([]string{fmt.Sprint(c.Old), fmt.Sprint(c.Size), roots[c.Old], roots[c.Size]}, c.Path...), " "))
	}
	for _, p := range v.Paths {
		add("tile", p.Path)
	}
	for _, b := range v.Bundles {
		raw, _ := hex.DecodeString(b.Bundle)
		add("bundle", string(byte(len(b.Entries)-1))+string(raw))
	}
	seedExamples(t, v.VKey, add)
	for _, e := range regexp.MustCompile(`"((?:room 1|arrive|merit|freeze|draw|assign|call|admit|skip|amend|end)[^"]*)"`).FindAllStringSubmatch(string(read(t, "../fairness/testdata/vectors.json")), -1) {
		add("entry", strings.ReplaceAll(e[1], `\n`, "\n"))
	}
	var files struct{ Files []struct{ File string } }
	load(t, "ticket/testdata/vectors.json", &files)
	for i, f := range files.Files {
		add("file", f.File)
		if i%8 == 0 {
			add("place", f.File)
		}
	}
	return seeds
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seedExamples adds the indented examples of FORMAT.md as seeds.
func seedExamples(t *testing.T, vkey string, add func(kind string, args ...string)) {
	t.Helper()
	found := map[string]int{}
	var witness, text string
	for _, block := range regexp.MustCompile(`(?m)(?:^(?:    .*)?\n)+`).FindAllString(string(read(t, "../audit/FORMAT.md")), -1) {
		example := strings.TrimLeft(regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, ""), "\n")
		example = strings.TrimRight(example, "\n") + "\n"
		switch {
		case strings.HasPrefix(example, "example.com/r/launch\n"):
			example = example[:strings.LastIndex(example, "\n\nsignature line")+1]
			text, _, _ = strings.Cut(example, "\n\n")
			add("note", example, vkey)
			add("form", example)
			found["note"]++
		case strings.HasPrefix(example, "c2sp.org/"):
			add("proof", example)
			add("receipt", example, vkey, "entry 12")
			found["proof"]++
		}
		for line := range strings.Lines(example) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "example.com/r/launch+"):
				add("vkey", line)
				found["vkey"]++
			case strings.HasPrefix(line, "witness.example.org+"):
				witness = line
				add("witness", line)
				found["witness"]++
			case strings.HasPrefix(line, "— witness.example.org "):
				b, err := base64.StdEncoding.DecodeString(strings.Fields(line)[2])
				if err != nil {
					t.Fatal(err)
				}
				add("cosignature", string(b), witness, text+"\n")
				found["cosignature"]++
			case strings.HasPrefix(line, "tile/0/000 "):
				for _, path := range strings.Fields(line) {
					add("tile", path)
					found["tile"]++
				}
			}
		}
	}
	for _, kind := range []string{"note", "proof", "vkey", "witness", "cosignature", "tile"} {
		if found[kind] == 0 {
			t.Errorf("no example of a %s in FORMAT.md: %v", kind, found)
		}
	}
}
