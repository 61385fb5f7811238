package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/ticket"
)

// saving is the browser's code as a script for Node.js. It checks places in published logs, and prints the
// results and the proofs that it would save.
const saving = `
import { readFileSync } from "node:fs";
import { checkPlace, formatBundle, gather, httpSource } from "./src/check/index.ts";

const answers = [];
for (const { prefix, receipt, ...visitor } of JSON.parse(readFileSync(0, "utf8"))) {
  const me = { ...visitor, receipt: new TextEncoder().encode(receipt) };
  const evidence = await gather(httpSource(prefix), me);
  const lines = checkPlace(me, evidence).map(({ id, status, reason }) => ({ id, status, reason }));
  answers.push({ lines, proof: formatBundle(me, evidence) });
}
process.stdout.write(JSON.stringify(answers), () => process.exit());
`

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

// question is the script's input for one visitor.
type question struct {
	Prefix  string `json:"prefix"`
	Origin  string `json:"origin"`
	VKey    string `json:"vkey"`
	Ticket  string `json:"ticket"`
	Receipt string `json:"receipt"`
}

// answer is the script's output.
type answer struct {
	Lines []ticket.Line `json:"lines"`
	Proof string        `json:"proof"`
}

// TestTicketFromBrowser reads rooms over HTTP with the browser's code, saves a proof for every visitor, and
// checks it with this program. Both must report the same four lines, for an honest room and for tampered
// ones.
func TestTicketFromBrowser(t *testing.T) {
	script := buildSaving(t)
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	for name, entries := range map[string][][]byte{
		"without a beacon": roomtest.Small(keys, keys.Policy()).Entries(),
		"with a beacon":    witnessed(t, keys),
	} {
		t.Run(name, func(t *testing.T) { compareChecks(t, script, keys, entries) })
	}
}

// witnessed writes a room with a beacon and witnesses, in which visitors join between a freeze and its draw.
func witnessed(t *testing.T, keys *roomtest.Keys) [][]byte {
	t.Helper()
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r := roomtest.Open(keys, keys.Witnessed())
	r.Append(&fairness.Amend{Time: at(-60), Change: fairness.ChangeMessage})
	r.Join(at(5), 4)
	r.Freeze(at(60))
	r.Join(at(61), 3)
	r.Draw(at(61))
	r.Assign(-1)
	r.Freeze(at(71))
	r.Join(at(72), 2)
	r.DrawBy(at(72), keys.Witnesses[1])
	r.Assign(-1)
	r.Settle(at(80))
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return r.Entries()
}

func compareChecks(t *testing.T, script string, keys *roomtest.Keys, entries [][]byte) {
	t.Helper()
	index := func(kind fairness.Kind) int {
		return slices.IndexFunc(entries, func(e []byte) bool { return bytes.HasPrefix(e, []byte(kind)) })
	}
	with := func(at int, change func(entry []byte) []byte) [][]byte {
		all := slices.Clone(entries)
		all[at] = change(bytes.Clone(all[at]))
		return all
	}
	flipped := func(entry []byte) []byte { // in the last hexadecimal digit
		entry[len(entry)-1] ^= 1
		return entry
	}
	rooms := []publishedRoom{
		{"honest", entries, ""},
		{"half", entries[:index(fairness.KindDraw)], ""},
		{"no freeze", slices.Delete(slices.Clone(entries), index(fairness.KindFreeze), index(fairness.KindFreeze)+1),
			ticket.GroupLine},
		{"another end of the draw", with(index(fairness.KindDraw), flipped), ticket.DrawLine},
		{"not UTF-8", with(index(fairness.KindDraw), func([]byte) []byte { return []byte("draw\xff") }),
			ticket.DrawLine},
		{"no arrival", slices.Delete(slices.Clone(entries), 2, 3), ticket.RecordLine},
	}
	var questions []question
	for _, room := range rooms {
		asked := ask(t, keys, entries, room.entries)
		if room.name != "honest" {
			asked = asked[:2]
		}
		questions = append(questions, asked...)
	}
	everybody := len(questions) - 2*(len(rooms)-1)
	for i, a := range save(t, script, questions) {
		room, isFirst := rooms[0], i == 0
		if i >= everybody {
			room, isFirst = rooms[1+(i-everybody)/2], (i-everybody)%2 == 0
		}
		lines := room.compare(t, keys, a, isFirst)
		if i < everybody && lines[3].Facts["position"] != placeIn(entries, questions[i].Ticket) {
			t.Errorf("visitor %d has place %s", i, lines[3].Facts["position"])
		}
	}
}

// publishedRoom is a room that may have been tampered with.
type publishedRoom struct {
	name    string
	entries [][]byte
	red     ticket.LineID // of the first visitor; empty: none
}

// compare checks the proof that the browser's code saved, and expects the same results from both programs.
func (r publishedRoom) compare(t *testing.T, keys *roomtest.Keys, a answer, isFirst bool) [4]ticket.Line {
	t.Helper()
	b, err := ticket.Parse([]byte(a.Proof))
	if err != nil {
		t.Fatalf("%s: %v", r.name, err)
	}
	lines := ticket.Check(b, ticket.Trust{VKey: keys.VKey})
	var said []ticket.Line
	for _, line := range lines {
		said = append(said, ticket.Line{ID: line.ID, Status: line.Status, Reason: line.Reason})
		if isFirst && (line.Status == ticket.Red) != (line.ID == r.red) {
			t.Errorf("%s: the first visitor's line %s is %s, %s", r.name, line.ID, line.Status, line.Reason)
		}
	}
	if diff := cmp.Diff(a.Lines, said); diff != "" {
		t.Errorf("%s: a visitor (-browser +here):\n%s", r.name, diff)
	}
	return lines
}

// buildSaving bundles the script with the tool that builds the pages.
func buildSaving(t *testing.T) string {
	t.Helper()
	ui := filepath.Join("..", "..", "web", "ui")
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		t.Skip("Node.js is not here")
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 20 {
		t.Skipf("Node.js %s is too old", bytes.TrimSpace(version))
	}
	if found, _ := filepath.Glob(filepath.Join(ui, "node_modules", "esbuild", "package.json")); found == nil {
		t.Skip("the pages are not built: make build")
	}
	script := filepath.Join(t.TempDir(), "saving.mjs")
	build := exec.CommandContext(t.Context(), "node", "--input-type=module", "--eval", bundling, script)
	build.Dir, build.Stdin = ui, strings.NewReader(saving)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return script
}

// ask publishes a room, and asks for each visitor of the original room with that visitor's receipt.
func ask(t *testing.T, keys *roomtest.Keys, original, published [][]byte) []question {
	t.Helper()
	files, err := roomtest.Publish(keys, published)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := files.Get(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	var questions []question
	var leaves []audit.Hash
	for i, text := range original {
		leaves = append(leaves, audit.LeafHash(text))
		e, err := fairness.ParseEntry(text)
		if err != nil {
			t.Fatal(err)
		}
		arrive, ok := e.(*fairness.Arrive)
		if !ok {
			continue
		}
		var tree audit.Tree
		path, err := tree.Extend(leaves).InclusionProof(uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: keys.Origin, Size: tree.Size(),
			Root: tree.Root()}, keys.Signer)
		if err != nil {
			t.Fatal(err)
		}
		receipt := audit.Proof{Index: uint64(i), Path: path, Checkpoint: signed}.Marshal()
		questions = append(questions, question{server.URL + "/", keys.Origin, keys.VKey, arrive.Ticket.String(),
			string(receipt)})
	}
	return questions
}

// save runs the script.
func save(t *testing.T, script string, questions []question) []answer {
	t.Helper()
	asked, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	node := exec.CommandContext(t.Context(), "node", script)
	node.Stdin, node.Stdout, node.Stderr = bytes.NewReader(asked), &stdout, &stderr
	if err := node.Run(); err != nil {
		t.Fatalf("node: %v: %s", err, &stderr)
	}
	var answers []answer
	if err := json.Unmarshal(stdout.Bytes(), &answers); err != nil || len(answers) != len(questions) ||
		len(answers) == 0 {
		t.Fatalf("%d answers to %d questions: %v: %s", len(answers), len(questions), err, &stderr)
	}
	return answers
}

// placeIn returns the position that a transcript gives to a ticket.
func placeIn(entries [][]byte, id string) string {
	for _, text := range entries {
		if e, err := fairness.ParseEntry(text); err == nil {
			if a, ok := e.(*fairness.Assign); ok && a.Ticket.String() == id {
				return strconv.FormatUint(uint64(a.Position), 10)
			}
		}
	}
	return ""
}
