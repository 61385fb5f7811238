package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// unpack ZIP DIR unpacks an archive.
func unpack(ts *testscript.TestScript, _ bool, args []string) {
	r, err := zip.OpenReader(ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { _ = r.Close() }()
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), r))
}

// TestArchiveAudit: an audit of an archive gives the same report, and the archive is not much larger than its
// compressed entries.
func TestArchiveAudit(t *testing.T) {
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	room, out := filepath.Join(dir, "room"), filepath.Join(dir, "room.zip")
	if err := roomtest.Generate(keys, roomtest.Dir(room), roomtest.Size{Visitors: 3000, Windows: 3}); err != nil {
		t.Fatal(err)
	}
	env := func(string) string { return "" }
	trust := []string{"--no-keep", "--vkey", keys.VKey, "--witness", keys.Witnesses[0].String()}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"dossier", room, out}, trust...), &stdout, &stderr,
		env); code != exitVerified {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	said, err := archive.Open("report.json")
	if err != nil {
		t.Fatal(err)
	}
	var before, after verifier.Report
	if err := json.NewDecoder(said).Decode(&before); err != nil {
		t.Fatal(err)
	}
	stdout.Reset()
	if code := run(t.Context(), append([]string{"audit", out, "--json"}, trust...), &stdout, &stderr,
		env); code != exitVerified {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), &after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(verifier.Report{}, "Seconds")); diff != "" || !after.OK {
		t.Error(diff)
	}

	// Every change of the archive is detected.
	for i := 100; i < len(content); i += len(content) / 60 {
		changed := bytes.Clone(content)
		changed[i] ^= 0x55
		file := filepath.Join(dir, "changed.zip")
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		stdout.Reset()
		code := run(t.Context(), append([]string{"audit", file, "--json"}, trust...), &stdout, &stderr, env)
		again := verifier.Report{}
		if code == exitVerified && (json.Unmarshal(stdout.Bytes(), &again) != nil ||
			again.Entries != after.Entries || !again.OK) {
			t.Errorf("byte %d changed: %s", i, &stdout)
		}
	}
}

// A file that compresses too well is stored uncompressed, because readers would refuse the archive as a zip
// bomb.
func TestDossierOfSparseRoom(t *testing.T) {
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	entries := [][]byte{roomtest.Open(keys, keys.Policy()).Entries()[0]}
	for range 300 {
		entries = append(entries, bytes.Repeat([]byte("a"), 60_000))
	}
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := files.Write(filepath.Join(dir, "room")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "room.zip")
	env := func(string) string { return "" }
	for _, args := range [][]string{{"dossier", filepath.Join(dir, "room"), out, "--no-keep"},
		{"audit", out, "--no-keep"}} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr, env); code != exitFailed || stderr.Len() > 0 {
			t.Errorf("%v: exit code %d\n%s", args, code, &stderr)
		}
	}
}
