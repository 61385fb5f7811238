package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/ticket"
)

// saved returns the proof that a visitor saved when the room had published this log.
func saved(t *testing.T, files roomtest.Files, vkey string, entry []byte, index uint64) *ticket.Bundle {
	t.Helper()
	signed := files[roomtest.CheckpointPath]
	head, err := verifier.Unverified(signed)
	if err != nil {
		t.Fatal(err)
	}
	path, err := audit.ProveInclusion(t.Context(), files.Tile, head, index)
	if err != nil {
		t.Fatal(err)
	}
	key := ticket.Text(vkey)
	return &ticket.Bundle{
		Version: 1, Origin: ticket.Text(head.Origin), VKey: &key, Ticket: ticket.Text(strings.Fields(string(entry))[4]),
		Receipt: audit.Proof{Index: index, Path: path, Checkpoint: signed}.Marshal(), Checkpoint: signed,
		Arrive: &ticket.Proven{Index: ticket.Number(index), Entry: entry, Path: path}, Growth: ticket.Hashes{},
	}
}

// Receipts and saved proofs of two people who were shown different histories.
func TestCompareReceipts(t *testing.T) {
	keys, one, two := fork(t)
	dir := t.TempDir()
	write := func(name string, content []byte, err error) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(name, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	bundle := saved(t, one, keys.VKey, entryOf(t, one, 10), 10)
	content, err := bundle.Marshal()
	mine := write("mine.json", content, err)
	receipt := write("mine.receipt", bundle.Receipt, nil)
	hers := filepath.Join(dir, "hers")
	if err := two.Write(hers); err != nil {
		t.Fatal(err)
	}
	his := filepath.Join(dir, "his")
	if err := one.Write(his); err != nil {
		t.Fatal(err)
	}
	content, err = saved(t, two, keys.VKey, entryOf(t, two, 12), 12).Marshal()
	later := write("later.json", content, err)
	for _, c := range []struct {
		a, b string
		kind string
		want []string
	}{
		{later, his, "receipt-20", []string{"AN ARRIVAL IS MISSING", "later.json, receipt"}},
		{mine, hers, "receipt-15", []string{"AN ARRIVAL IS MISSING", "mine.json, receipt", "named by " + mine}},
		{receipt, hers, "fork-15", []string{"TWO HISTORIES", "mine.receipt, receipt"}},
	} {
		var stdout, stderr bytes.Buffer
		env := func(string) string { return "" }
		if code := run(t.Context(), []string{"compare", c.a, c.b, "--evidence", dir}, &stdout, &stderr,
			env); code != exitFailed {
			t.Errorf("%s: exit code %d\n%s%s", c.a, code, &stdout, &stderr)
		}
		for _, text := range c.want {
			if !strings.Contains(stdout.String(), text) {
				t.Errorf("%s: %q is not in %s", c.a, text, &stdout)
			}
		}
		file := filepath.Join(dir, "evidence-"+c.kind+".json")
		stdout.Reset()
		if code := run(t.Context(), []string{"evidence", file, "--vkey", keys.VKey}, &stdout, &stderr,
			env); code != exitFailed {
			t.Errorf("%s: exit code %d\n%s%s", c.kind, code, &stdout, &stderr)
		}
		if c.kind == "receipt-15" && !strings.Contains(stdout.String(), string(bundle.Ticket)) {
			t.Errorf("the ticket is not in %s", &stdout)
		}
	}
}

func entryOf(t *testing.T, files roomtest.Files, index int) []byte {
	t.Helper()
	return allEntries(t, files)[index]
}

// allEntries returns the entries of a log with one bundle.
func allEntries(t *testing.T, files roomtest.Files) (entries [][]byte) {
	t.Helper()
	signed, err := verifier.Unverified(files[roomtest.CheckpointPath])
	if err != nil {
		t.Fatal(err)
	}
	tile := audit.Tile{Level: -1, Width: int(signed.Size)}
	if err := audit.SplitBundle(files[tile.Path()], tile.Width, func(text []byte) error {
		entries = append(entries, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestEvidenceOfSavedProof: a saved proof is not evidence, and the hint names the command that
// checks it.
func TestEvidenceOfSavedProof(t *testing.T) {
	keys, one, _ := fork(t)
	content, err := saved(t, one, keys.VKey, entryOf(t, one, 10), 10).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "my proof.json")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"evidence", name}, &stdout, &stderr, func(string) string { return "" })
	want := "proofline-verify: " + name +
		" is a saved proof, not evidence\nhint: check it with: proofline-verify ticket '" + name + "'\n"
	if code != exitUnreadable || stderr.String() != want {
		t.Errorf("exit code %d, said %q, want %q", code, &stderr, want)
	}
}

// Two checkpoints that a witness kept, one of them cosigned, make an evidence file.
func TestCompareCosigned(t *testing.T) {
	keys, one, two := fork(t)
	dir := t.TempDir()
	var pair [2]string
	for i, files := range []roomtest.Files{one, two} {
		signed := files[roomtest.CheckpointPath]
		w := keys.Witnesses[i]
		text, _, _ := strings.Cut(string(signed), "\n\n")
		cosigned := string(signed) + w.Cosign(w.Private, text+"\n", 1_767_225_600).Line(w.Name())
		pair[i] = filepath.Join(dir, []string{"fork.kept", "fork.offered"}[i])
		if err := os.WriteFile(pair[i], []byte(cosigned), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hers := filepath.Join(dir, "hers")
	if err := two.Write(hers); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	env := func(string) string { return "" }
	if code := run(t.Context(), []string{"compare", pair[0], pair[1], "--vkey", keys.VKey, "--source", hers,
		"--evidence", dir}, &stdout, &stderr, env); code != exitFailed {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if code := run(t.Context(), []string{"evidence", filepath.Join(dir, "evidence-fork-15.json"), "--vkey",
		keys.VKey}, &stdout, &stderr, env); code != exitFailed {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}

// A receipt proves only the entry at its index. The transcript's entry there counts only if the checkpoint
// proves it.
func TestCompareReceiptProof(t *testing.T) {
	keys, one, _ := fork(t)
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	bundle := saved(t, one, keys.VKey, entryOf(t, one, 10), 10)
	good := write("good.receipt", bundle.Receipt)
	receipt, err := audit.ParseProof(bundle.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	signed := write("checkpoint", receipt.Checkpoint)
	moved := func(index uint64) []byte {
		receipt.Index = index
		return receipt.Marshal()
	}
	bundle.Receipt = moved(11)
	content, err := bundle.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	room, changed := filepath.Join(dir, "room"), filepath.Join(dir, "changed")
	if err := one.Write(room); err != nil {
		t.Fatal(err)
	}
	head, err := verifier.Unverified(receipt.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	older, err := roomtest.Publish(keys, allEntries(t, one)[:12])
	if err != nil {
		t.Fatal(err)
	}
	short := filepath.Join(dir, "short")
	if err := older.Write(short); err != nil {
		t.Fatal(err)
	}
	entries := audit.Tile{Level: -1, Width: int(head.Size)}.Path()
	one[entries] = bytes.Replace(one[entries], entryOf(t, one, 10),
		bytes.Replace(entryOf(t, one, 10), []byte("arrive"), []byte("ARRIVE"), 1), 1)
	if err := one.Write(changed); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"holds": {[]string{good, room}, exitVerified,
			"proves entry 10, the arrival of the ticket " + string(bundle.Ticket)},
		"with a source": {[]string{good, signed, "--source", room}, exitVerified, "proves entry 10"},
		"another index": {[]string{write("moved.receipt", moved(11)), room}, exitFailed, "WRONG RECEIPT"},
		"no such entry": {[]string{write("beyond.receipt", moved(head.Size)), signed, "--vkey", keys.VKey},
			exitFailed, "WRONG RECEIPT"},
		"no transcript": {[]string{filepath.Join(dir, "moved.receipt"), signed, "--vkey", keys.VKey},
			exitVerified, "not checked against its entry: add a transcript"},
		"saved proof": {[]string{write("moved.json", content), signed}, exitFailed, "WRONG RECEIPT"},
		"perhaps a fork": {[]string{filepath.Join(dir, "moved.receipt"), short}, exitUnreadable,
			"may have another history"},
		"only a beginning":  {[]string{good, short}, exitUnreadable, "proves entry 10"},
		"changed copy":      {[]string{good, changed}, exitVerified, "not checked against its entry: verify entry 10"},
		"one copy is right": {[]string{good, changed, "--source", room}, exitVerified, "proves entry 10"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"compare", "--evidence", dir}, c.args...), &stdout, &stderr,
			func(string) string { return "" })
		if out := strings.Join(strings.Fields(stdout.String()), " "); code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q:\n%s%s", name, code, c.code, c.want, &stdout, &stderr)
		}
	}
}
