package connector

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/connector/internal/id"
	"github.com/proofline/proofline/connector/internal/reach"
	"github.com/proofline/proofline/connector/internal/state"
	"github.com/proofline/proofline/internal/testlog"
)

// recorded returns a node with a state file.
func (n *netted) recorded(file string, change ...func(*Options)) *shop {
	n.Helper()
	withFile := func(o *Options) { o.State = file }
	return n.shop(`,"failure":"fail-open-after 30s"`, append([]func(*Options){withFile}, change...)...)
}

// open lets three requests through while the room is out of reach.
func (s *shop) open() {
	s.Helper()
	s.failed()
	s.clock.pass(31 * time.Second)
	s.isThrough("open", s.failed())
	s.isThrough("open", s.get("/tickets"))
	s.isThrough("open", s.get("/tickets"))
}

// failOpenIn returns the intervals in a file, without ids.
func failOpenIn(t testing.TB, file string, now time.Time) []reach.Report {
	t.Helper()
	_, before := state.Open(file, testlog.New(t, slog.LevelInfo), func() time.Time { return now })
	var all []reach.Report
	for _, o := range before.FailOpen {
		one := o.Report()
		one.ID = ""
		all = append(all, one)
	}
	return all
}

// reportedFailOpen returns the intervals reported so far.
func (n *netted) reportedFailOpen() (all []reach.Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, said := range n.reports {
		for _, r := range said.Rooms {
			all = append(all, r.FailOpen...)
		}
	}
	return all
}

// TestStateAfterCrash tests that an interval open at a crash is reported up to the last save.
func TestStateAfterCrash(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateShut, 0)
	file, crashed := filepath.Join(t.TempDir(), "fail_open"), filepath.Join(t.TempDir(), "fail_open")
	s := n.recorded(file)
	if got := failOpenIn(t, file, s.clock.now()); len(got) != 0 {
		t.Errorf("at the start %+v", got)
	}
	began := s.clock.now()
	s.open()
	s.clock.pass(20 * time.Second)
	want := []reach.Report{{From: began.Add(31 * time.Second).UnixMilli(), Until: began.Add(51 * time.Second).UnixMilli(), Requests: 3}}
	eventually(t, "it is saved", func() bool { return cmp.Equal(want, failOpenIn(t, file, s.clock.now())) })
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(crashed, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.queue.isDown.Store(false)
	s.clock.pass(time.Hour)
	again := n.recorded(crashed)
	said := n.reportedFailOpen()
	if len(said) != 1 || said[0].ID != id.Text(s.current.Load().states[0].reach.Intervals()[0].ID) {
		t.Fatalf("reported %+v", said)
	}
	said[0].ID = ""
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	eventually(t, "recorded intervals are removed from the file", func() bool { return len(failOpenIn(t, crashed, s.clock.now())) == 0 })
	if again.report(); len(n.reportedFailOpen()) != 1 {
		t.Errorf("reported again %+v", n.latest())
	}
}

// TestStateAfterClose tests that an interval open at Close is in the last report, or else
// in the first after a restart.
func TestStateAfterClose(t *testing.T) {
	t.Parallel()
	for name, isThere := range map[string]bool{"the server is there": true, "the server is away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetted(t)
			n.says(GateShut, 0)
			file := filepath.Join(t.TempDir(), "fail_open")
			s := n.recorded(file)
			s.open()
			s.clock.pass(time.Second)
			want := []reach.Report{{From: s.clock.now().Add(-time.Second).UnixMilli(), Until: s.clock.now().UnixMilli(), Requests: 3}}
			s.queue.isDown.Store(!isThere)
			s.Close()
			if isThere {
				if said := n.latest().FailOpen; len(said) != 1 || len(failOpenIn(t, file, s.clock.now())) != 0 {
					t.Errorf("reported %+v, kept %v", said, failOpenIn(t, file, s.clock.now()))
				}
				return
			}
			if diff := cmp.Diff(want, failOpenIn(t, file, s.clock.now())); diff != "" {
				t.Error(diff)
			}
			s.queue.isDown.Store(false)
			n.recorded(file)
			if said := n.reportedFailOpen(); len(said) != 1 || said[0].Requests != 3 {
				t.Errorf("reported %+v", said)
			}
		})
	}
}

// TestStateOfFormerRooms tests that intervals of rooms that the rules no longer name are
// reported, unless they are too old.
func TestStateOfFormerRooms(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateShut, 0)
	file := filepath.Join(t.TempDir(), "fail_open")
	now := n.clock.now()
	past := func(ago time.Duration) reach.Past {
		return reach.Past{Room: "https://queue.example.com/r/other",
			Interval: reach.Interval{From: now.Add(-ago - time.Minute), Until: now.Add(-ago), Requests: 7, ID: id.New()}}
	}
	if err := os.WriteFile(file,
		state.Format(state.State{FailOpen: []reach.Past{past(state.MaxFailOpenAge), past(state.MaxFailOpenAge - time.Minute)}}),
		0o600); err != nil {
		t.Fatal(err)
	}
	n.recorded(file)
	n.mu.Lock()
	rooms := n.reports[0].Rooms
	n.mu.Unlock()
	if len(rooms) != 2 || rooms[1].Room != "https://queue.example.com/r/other" || len(rooms[1].FailOpen) != 1 ||
		rooms[1].FailOpen[0].Requests != 7 {
		t.Errorf("reported %+v", rooms)
	}
}

// TestInvalidState tests that an invalid file is logged, and kept until there is something
// to save.
func TestInvalidState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, c := range map[string]struct{ file, text, want string }{
		"not JSON":         {"a", "x", "not a state file of a connector"},
		"future version":   {"b", `{"version":2,"fail_open":[]}`, "not a state file of a connector"},
		"unreadable":       {"c", "", "is a directory"},
		"unwritable":       {"d/e", "", "will not survive a restart"},
		"empty":            {"f", "", "not a state file of a connector"},
		"followed by more": {"g", string(state.Format(state.State{})) + "}", "not a state file of a connector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetted(t)
			n.says(GateShut, 0)
			file := filepath.Join(dir, c.file)
			var err error
			switch name {
			case "unreadable":
				err = os.Mkdir(file, 0o700)
			case "unwritable":
			default:
				err = os.WriteFile(file, []byte(c.text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			said := make(loggedLines, 1000)
			s := n.recorded(file, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(said, nil)) })
			if first := <-said; !strings.Contains(first, c.want) {
				t.Errorf("said %s", first)
			}
			if text, _ := os.ReadFile(file); string(text) != c.text {
				t.Errorf("the file is %q", text)
			}
			s.open()
			if c.text != "" {
				eventually(t, "it is saved", func() bool { text, _ := os.ReadFile(file); return bytes.Contains(text, []byte(`"requests":3`)) })
			}
		})
	}
}

// TestStateLoggedOnce tests that a failed write is logged once a minute, with the file.
func TestStateLoggedOnce(t *testing.T) {
	t.Parallel()
	n := newNetted(t)
	n.says(GateShut, 0)
	file := filepath.Join(t.TempDir(), "none", "fail_open")
	said := make(loggedLines, 1000)
	s := n.recorded(file, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(said, nil)) })
	count := func() (lines int) {
		for range 3 {
			s.saveState()
		}
		for _, line := range said.all() {
			if strings.Contains(line, "will not survive a restart") && strings.Contains(line, file) {
				lines++
			}
		}
		return lines
	}
	if got := count(); got != 1 {
		t.Errorf("logged %d times at the start", got)
	}
	s.clock.pass(time.Minute)
	if got := count(); got != 1 {
		t.Errorf("logged %d times a minute later", got)
	}
}

// TestStateWithoutToken tests that no file is written without a token.
func TestStateWithoutToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fail_open")
	s := newShop(t, `,"failure":"fail-open-after 30s"`, func(o *Options) { o.State = file })
	s.open()
	s.Close()
	if _, err := os.Stat(file); err == nil {
		t.Error("there is a file")
	}
	if r := s.get("/tickets"); r.StatusCode == http.StatusOK {
		s.got = nil
	}
}
