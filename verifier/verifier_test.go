package verifier_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

const origin = "queue.example.com/r/sale"

func newKeys(t testing.TB, origin, operator string) *roomtest.Keys {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// small returns the small room of the operator "honest".
func small(t testing.TB) (*roomtest.Keys, *roomtest.Room) {
	t.Helper()
	keys := newKeys(t, origin, "honest")
	r := roomtest.Small(keys, keys.Policy())
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return keys, r
}

func publish(t testing.TB, keys *roomtest.Keys, entries [][]byte) roomtest.Files {
	t.Helper()
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func auditOf(t testing.TB, src verifier.Source, trust verifier.Trust) *verifier.Report {
	t.Helper()
	r, err := verifier.Audit(t.Context(), src, trust)
	if err != nil {
		t.Fatalf("audit: %v", err)
	}
	return r
}

func check(t testing.TB, r *verifier.Report, id string) verifier.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c verifier.Check) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("there is no check %q", id)
	}
	return r.Checks[i]
}

// failed returns the ids of the failed checks.
func failed(r *verifier.Report) []string {
	var ids []string
	for _, c := range r.Checks {
		if c.Status == verifier.Fail {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func wantFailed(t testing.TB, r *verifier.Report, ids ...string) {
	t.Helper()
	if diff := cmp.Diff(ids, failed(r)); diff != "" {
		t.Errorf("failed checks (-want +got):\n%s", diff)
	}
	if r.OK || r.Level != verifier.LevelNone {
		t.Errorf("ok %v, level %d, want a failing report", r.OK, r.Level)
	}
}

func TestHonestRoomIsVerified(t *testing.T) {
	keys, room := small(t)
	entries := room.Entries()
	half := publish(t, keys, entries[:len(entries)/2])
	r := auditOf(t, publish(t, keys, entries), verifier.Trust{VKey: keys.VKey, Kept: half[roomtest.CheckpointPath]})
	for _, c := range r.Checks {
		if c.Status != verifier.Pass || c.Title == "" || c.Detail == "" {
			t.Errorf("check %s: %s %q", c.ID, c.Status, c.Detail)
		}
	}
	counts := room.State().Counts()
	got := []uint64{r.Entries, r.Arrivals, r.Windows, r.Assignments, r.Admissions}
	want := []uint64{uint64(len(entries)), counts.Arrivals, counts.Windows, counts.Assigned, counts.Admitted}
	if !r.OK || r.Level != verifier.LevelConsistent || r.Origin != origin || !slices.Equal(got, want) {
		t.Errorf("ok %v, level %d, origin %q, counts %v, want %v", r.OK, r.Level, r.Origin, got, want)
	}
	if text := strings.Join(r.NotProven, "\n"); len(r.NotProven) != 13 || !strings.Contains(text, "operator's claims") ||
		!strings.Contains(text, "list each change with its time") || !strings.Contains(text, fmt.Sprintf("That those who left (%d) did so themselves", counts.Left)) {
		t.Errorf("not proven: %q", r.NotProven)
	}
}

// Every prefix of a room is a valid room, even if it ends between entries that belong together, and can be
// compared with every shorter one.
func TestEveryPrefixIsVerified(t *testing.T) {
	keys, room := small(t)
	entries := room.Entries()
	kept := publish(t, keys, nil)[roomtest.CheckpointPath]
	for n := 1; n <= len(entries); n++ {
		files := publish(t, keys, entries[:n])
		r := auditOf(t, files, verifier.Trust{VKey: keys.VKey, Kept: kept})
		if !r.OK || r.Entries != uint64(n) || check(t, r, "append-only").Status != verifier.Pass {
			t.Fatalf("first %d entries: %+v", n, r)
		}
		kept = files[roomtest.CheckpointPath]
	}
}

// A kept checkpoint may end anywhere in a tile.
func TestKeptCheckpointOfAnySize(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 600)
	entries := room.Entries()
	files := publish(t, keys, entries)
	forked := slices.Clone(entries)
	forked[300] = entries[301]
	for _, size := range []int{0, 1, 255, 256, 257, 300, 301, 511, 512, 513, 600, 601} {
		kept := publish(t, keys, entries[:size])[roomtest.CheckpointPath]
		if r := auditOf(t, files, verifier.Trust{Kept: kept}); !r.OK || check(t, r, "append-only").Status != verifier.Pass {
			t.Errorf("kept size %d: %+v", size, check(t, r, "append-only"))
		}
		if size > 300 {
			kept = publish(t, keys, forked[:size])[roomtest.CheckpointPath]
			wantFailed(t, auditOf(t, files, verifier.Trust{Kept: kept}), "append-only")
		}
	}
}

func TestUnfinishedRoomListsOpenPoints(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 3)
	room.Freeze(roomtest.Opens + 60_000)
	room.Draw(roomtest.Opens + 60_000)
	room.Assign(1)
	room.Join(roomtest.Opens+65_000, 2)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{})
	if !r.OK {
		t.Fatalf("%+v", r)
	}
	text := strings.Join(r.NotProven, "\n")
	for _, want := range []string{
		"Half of a window's tickets get half of its places", "leaves no receipt", "only one ticket", "without a beacon", "too few witnesses",
		"taken from the transcript itself", "no earlier checkpoint was given",
		"has not ended", "Which places 2 arrivals will get", "2 follow only from the seeds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not proven lacks %q:\n%s", want, text)
		}
	}
}

// Reports mention actions that the rules allow but people would consider unfair.
func TestAllowedActionsAreReported(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	policy := keys.Policy()
	policy.Outflow.MaxActive = 7
	room := roomtest.Open(keys, policy)
	tickets := room.Join(roomtest.Opens, 3)
	room.Settle(roomtest.Opens + 60_000)
	room.Append(&fairness.Skip{Time: roomtest.Opens + 60_001, Ticket: tickets[0], Reason: fairness.Revoked})
	room.End(roomtest.Opens + 60_002)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{VKey: keys.VKey})
	text := strings.Join(r.NotProven, "\n")
	for _, want := range []string{"took places away (1)", "more than 7 visitors", "before 2 visitors with a place were called"} {
		if !r.OK || !strings.Contains(text, want) {
			t.Errorf("ok %v, not proven lacks %q:\n%s", r.OK, want, text)
		}
	}
	for _, none := range []string{"amended", "those who left"} {
		if strings.Contains(text, none) {
			t.Errorf("not proven has %q:\n%s", none, text)
		}
	}
}

func TestReportJSON(t *testing.T) {
	keys, room := small(t)
	b, err := json.Marshal(auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{}))
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"admissions", "arrivals", "assignments", "beacon", "checks", "cosigned", "draws", "entries", "lanes", "level", "methods", "not_proven", "ok", "origin", "quorum", "seconds", "vouched", "windows", "witnessed", "witnesses"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	first := fields["checks"].([]any)[0].(map[string]any)
	if len(first) != 4 || first["id"] != "history" || first["status"] != "pass" || first["title"] == "" || first["detail"] == "" {
		t.Errorf("first check: %v", first)
	}
}

// Every rule of package fairness has its check.
func TestEveryRuleHasACheck(t *testing.T) {
	keys, room := small(t)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{})
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "fairness", "violation.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		rule, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		check(t, r, rule)
		rules++
		return true
	})
	if rules < 17 {
		t.Errorf("found only %d rules in package fairness", rules)
	}
}

func TestProgress(t *testing.T) {
	keys := newKeys(t, origin, "honest")
	room := roomtest.Open(keys, keys.Policy())
	room.Join(roomtest.Opens, 600)
	var seen []uint64
	trust := verifier.Trust{Progress: func(done, total uint64) { seen = append(seen, done, total) }}
	if r := auditOf(t, publish(t, keys, room.Entries()), trust); !r.OK {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff([]uint64{256, 601, 512, 601, 601, 601}, seen); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// The README explains every check, under its title, and no others.
func TestREADMEExplainsEveryCheck(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	keys, room := small(t)
	r := auditOf(t, publish(t, keys, room.Entries()), verifier.Trust{})
	for _, c := range r.Checks {
		if !strings.Contains(string(b), "| `"+c.ID+"` | "+c.Title+" |") {
			t.Errorf("README.md lacks check %s: %s", c.ID, c.Title)
		}
	}
	_, after, _ := strings.Cut(string(b), "\n## What each check means\n")
	tables, _, _ := strings.Cut(after, "\n## ")
	if n := strings.Count(tables, "\n| `"); n != len(r.Checks) || !strings.Contains(string(b), fmt.Sprintf("%d numbered checks", n)) {
		t.Errorf("README.md has %d checks, the report %d", n, len(r.Checks))
	}
}
