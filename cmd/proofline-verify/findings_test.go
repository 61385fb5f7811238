package main

import (
	"bytes"
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier/findings"
)

// acted is a room whose operator did everything that the rules allow but a reader should know about.
func acted(t *testing.T) (*roomtest.Keys, *roomtest.Room) {
	t.Helper()
	keys, err := roomtest.NewKeys("queue.example.com/r/sale", "honest")
	if err != nil {
		t.Fatal(err)
	}
	policy := keys.Witnessed()
	policy.Claim = 30_000
	r := roomtest.Open(keys, policy)
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r.Append(&fairness.Amend{Time: at(1), Change: fairness.ChangeOpen})
	r.Append(&fairness.Amend{Time: at(2), Change: fairness.ChangeShut})
	r.Append(&fairness.Tell{Time: at(3), Subject: fairness.TellUnguarded, From: at(1), Until: at(2), Count: 7})
	r.Append(&fairness.Tell{Time: at(3), Subject: fairness.TellRefused, Name: "rate", From: at(1), Until: at(9), Count: 7})
	r.Join(at(4), 1)
	r.Freeze(at(75)) // late, and with one arrival
	four := r.Join(at(76), 4)
	r.Freeze(at(80))
	r.Draw(at(81))
	r.Assign(-1)
	pending := r.State().Pending()[0]
	signature, err := keys.Chain.Sign(pending.Round)
	if err != nil {
		t.Fatal(err)
	}
	r.Skip(pending.Due, four[0], fairness.Left)
	draw, ok := r.State().NextDraw(pending.Due+20_000, signature)
	if !ok {
		t.Fatal("no draw is next")
	}
	r.Append(draw)
	r.Assign(-1)
	r.Join(r.State().Now(), 2)
	r.End(r.State().Now() + 5000)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, r
}

// TestFindingsEverywhere: all findings appear in the text, on the HTML page and in the JSON of an audit.
func TestFindingsEverywhere(t *testing.T) {
	t.Parallel()
	keys, room := acted(t)
	files, err := roomtest.Publish(keys, room.Entries())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "report.html")
	audit := func(args ...string) string {
		t.Helper()
		var out, failed bytes.Buffer
		none := func(string) string { return "" }
		if code := run(t.Context(), append([]string{"audit", dir, "--no-keep"}, args...), &out, &failed,
			none); code != 0 {
			t.Fatalf("exit code %d: %s%s", code, failed.String(), out.String())
		}
		return out.String()
	}
	var said struct{ Findings []findings.Finding }
	if err := json.Unmarshal([]byte(audit("--json", "--html", page)), &said); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.Join(strings.Fields(audit()), " ") // lines are wrapped
	for _, id := range []findings.ID{
		findings.Gate, findings.FailOpen, findings.Between, findings.LateDraw, findings.LateFreeze, findings.Undrawn, findings.Single,
		findings.ShortClaim, findings.Contrary, findings.Told, findings.Amendments,
	} {
		found := findings.Of(said.Findings, id)
		if found == nil {
			t.Errorf("%s is not among %+v", id, said.Findings)
			continue
		}
		if !strings.Contains(plain, found.Title+". "+found.Text) {
			t.Errorf("%s is not in the text: %s", id, found.Text)
		}
		if on := html.UnescapeString(string(written)); !strings.Contains(on,
			"<h3>"+found.Title+"</h3>\n<p>"+found.Text+"</p>") {
			t.Errorf("%s is not on the page: %s", id, found.Text)
		}
	}
	if len(said.Findings) != 11 {
		t.Errorf("%d findings", len(said.Findings))
	}
	for _, top := range said.Findings[:2] {
		if !strings.Contains(strings.Split(plain, " Checks ")[0], top.Text) ||
			!strings.Contains(strings.Split(html.UnescapeString(string(written)), "</header>")[0], top.Text) {
			t.Errorf("not on top: %s", top.Text)
		}
	}
}
