package verifier_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

const ui = "../web/ui"

// bundling bundles a script for Node.js into one file, with the tool that builds the pages.
const bundling = `
import { readFileSync } from "node:fs";
import { build } from "esbuild";

await build({
  stdin: { contents: readFileSync(0, "utf8"), resolveDir: process.cwd() },
  outfile: process.argv[1],
  bundle: true,
  format: "esm",
  platform: "node",
  logLevel: "warning",
});
`

// auditing audits one transcript after the other with the second program.
const auditing = `
import { readFileSync } from "node:fs";
import { audit } from "./src/audit/audit.ts";
import { open } from "./src/audit/files.ts";

const reports = [];
for (const { dir, ...trust } of JSON.parse(readFileSync(0, "utf8"))) reports.push(await audit(open(dir), trust));
process.stdout.write(JSON.stringify(reports));
`

// otherReport is the report of the second program.
type otherReport struct {
	verifier.Report
	Witnesses int `json:"witnesses"`
	Breaches  []struct {
		Check string `json:"check"`
		Entry *int   `json:"entry"`
	} `json:"breaches"`
}

// opinion is the part of a report on which both programs must agree.
type opinion struct {
	OK                                                              bool
	Level                                                           int
	Origin, Beacon                                                  string
	Entries, Arrivals, Windows, Draws, Assignments, Admits, Vouched uint64
	Quorum                                                          uint32
	Failed                                                          []string
	At                                                              string // which entry breaks a rule
}

// unreadable is the place of a malformed bundle.
const unreadable = "a bundle"

func (r otherReport) opinion() opinion {
	o := opinionOf(&r.Report)
	for _, b := range r.Breaches {
		o.Failed = append(o.Failed, b.Check)
		switch {
		case b.Entry != nil && b.Check == "history":
			o.At = unreadable
		case b.Entry != nil:
			o.At = strconv.Itoa(*b.Entry)
		}
	}
	slices.Sort(o.Failed)
	return o
}

// opinionOf leaves out the checks that are made twice, because the second program has only the rules.
func opinionOf(r *verifier.Report) opinion {
	o := opinion{
		OK: r.OK, Level: r.Level, Origin: r.Origin, Beacon: r.Beacon, Quorum: r.Quorum,
		Entries: r.Entries, Arrivals: r.Arrivals, Windows: r.Windows, Draws: r.Draws,
		Assignments: r.Assignments, Admits: r.Admissions, Vouched: r.Vouched,
	}
	for _, c := range r.Checks {
		if c.Status != verifier.Fail || c.ID == "fifo" || c.ID == "seed-once" {
			continue
		}
		o.Failed = append(o.Failed, c.ID)
		if rest, ok := strings.CutPrefix(c.Detail, "entry "); ok {
			o.At, _, _ = strings.Cut(rest, " ")
		}
	}
	slices.Sort(o.Failed)
	return o
}

// ask runs a script of the second program, which reads a question and writes an answer.
func ask(t *testing.T, script string, question, answer any) {
	t.Helper()
	file := build(t, script)
	asked, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", file)
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(asked), &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("node: %v: %s", err, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), answer); err != nil {
		t.Fatalf("read answer: %v", err)
	}
}

// build bundles a script, or skips the test if that is not possible.
func build(t *testing.T, script string) (file string) {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		t.Skip("Node.js is not here")
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 20 {
		t.Skipf("Node.js %s is too old", bytes.TrimSpace(version))
	}
	if _, err := os.Stat(filepath.Join(ui, "node_modules", "esbuild", "package.json")); err != nil {
		t.Skip("the pages are not built: make build")
	}
	file = filepath.Join(t.TempDir(), "script.mjs")
	bundle := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", bundling, file)
	bundle.Dir, bundle.Stdin = ui, strings.NewReader(script)
	if out, err := bundle.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return file
}

// published is a transcript for both programs.
type published struct {
	name  string
	files roomtest.Files
	trust verifier.Trust
}

// TestSecondProgram audits rooms with the program in web/ui/src/audit, which was written from RULES.md alone:
// honest rooms, and tampered ones, signed again or not. Both programs must report the same, and name the same
// rule and entry.
func TestSecondProgram(t *testing.T) {
	rooms := slices.Concat(honestRooms(t), attackedRooms(t), mutatedRooms(t), lanedRooms(t))
	type question struct {
		Dir       string   `json:"dir"`
		VKey      string   `json:"vkey,omitempty"`
		Beacons   []string `json:"beacons"`
		Witnesses []string `json:"witnesses"`
	}
	var questions []question
	for i, room := range rooms {
		dir := filepath.Join(t.TempDir(), strconv.Itoa(i))
		if err := room.files.Write(dir); err != nil {
			t.Fatal(err)
		}
		q := question{dir, room.trust.VKey, []string{}, append([]string{}, room.trust.Witnesses...)}
		for _, hash := range room.trust.Beacons {
			q.Beacons = append(q.Beacons, hex.EncodeToString(hash[:]))
		}
		questions = append(questions, q)
	}
	var others []otherReport
	ask(t, auditing, questions, &others)
	if len(others) != len(rooms) {
		t.Fatalf("%d reports of %d rooms", len(others), len(rooms))
	}
	levels := map[int]int{}
	for i, room := range rooms {
		want := opinionOf(auditOf(t, room.files, room.trust))
		levels[want.Level]++
		got := others[i].opinion()
		if got.At == unreadable && slices.Contains(want.Failed, "history") {
			continue // no rule says how far an invalid bundle is read
		}
		if !want.OK {
			want.Draws, got.Draws = 0, 0 // one program counts a draw that breaks a rule, the other does not
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-this program +the second):\n%s", room.name, diff)
		}
	}
	t.Logf("rooms by level: %v", levels)
	if len(levels) != 4 {
		t.Errorf("rooms by level: %v", levels)
	}
}

func honestRooms(t *testing.T) (rooms []published) {
	keys, room := small(t)
	plain := publish(t, keys, room.Entries())
	rooms = append(rooms,
		published{"small", plain, verifier.Trust{VKey: keys.VKey}},
		published{"small, key of its own", plain, verifier.Trust{}},
		published{"small, key of another", plain, verifier.Trust{VKey: newKeys(t, origin, "rival").VKey}},
		published{"signed by another", publish(t, newKeys(t, origin, "rival"), room.Entries()), verifier.Trust{VKey: keys.VKey}},
		published{"signed by another known key", publish(t, newKeys(t, origin, "rival"), room.Entries()), verifier.Trust{VKey: newKeys(t, origin, "rival").VKey}},
		published{"no entries", publish(t, keys, nil), verifier.Trust{VKey: keys.VKey}},
	)
	keys, room = witnessed(t, func(k *roomtest.Keys) []roomtest.Witness { return k.Witnesses[1:] })
	for n := range room.Entries() {
		files := publish(t, keys, room.Entries()[:n+1])
		for known := range 4 {
			trust := verifier.Trust{VKey: keys.VKey, Beacons: [][32]byte{keys.Chain.Chain().Hash()}}
			for _, w := range keys.Witnesses[:known] {
				trust.Witnesses = append(trust.Witnesses, w.String())
			}
			if known == 0 {
				trust.Beacons = nil
			}
			rooms = append(rooms, published{fmt.Sprintf("%d entries, %d witnesses known", n+1, known), files, trust})
		}
	}
	large := roomtest.Files{}
	if err := roomtest.Generate(keys, large, roomtest.Size{Visitors: 1000, Windows: 3}); err != nil {
		t.Fatal(err)
	}
	return append(rooms, published{"a thousand visitors", large, verifier.Trust{VKey: keys.VKey}})
}

func attackedRooms(t *testing.T) (rooms []published) {
	keys, room := small(t)
	honest := publish(t, keys, room.Entries())
	for _, a := range attacks() {
		tampered, _ := a.make(room.Entries())
		trust := verifier.Trust{VKey: keys.VKey}
		rooms = append(rooms,
			published{a.name, publish(t, keys, tampered), trust},
			published{a.name + ", not signed", unsigned(t, honest, len(room.Entries()), tampered), trust})
	}
	return rooms
}

// mutatedRooms are some of the mechanical changes of every entry.
func mutatedRooms(t *testing.T) (rooms []published) {
	const some = 15 // one in this many
	keys, plain := small(t)
	_, beacon := witnessed(t, all)
	n := 0
	for _, room := range []*roomtest.Room{plain, beacon} {
		honest := transcript(room.Entries())
		change := mutations(transcript(plain.Entries()))
		for i := range honest {
			for _, m := range change {
				if n++; n%some != 0 {
					continue
				}
				name := fmt.Sprintf("%s: entry %d, %s", m.name, i, honest.field(i, 0))
				rooms = append(rooms, published{name, publish(t, keys, m.make(honest, i)), verifier.Trust{VKey: keys.VKey}})
			}
		}
	}
	return rooms
}
