package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/stats"
)

const statsOrigin = "queue.example.com/r/sale"

func TestStatsScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/stats",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "room": writeRoom, "serve": serve, "columns": columns, "crowd": writeCrowd, "test": testOf,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/xdg")
			return nil
		},
	})
}

// crowd DIR writes a room of 900 visitors in three windows, sets VKEY to its key, and writes two lists:
// shoppers.txt has tickets and secrets of unbiased visitors, front.txt the tickets of the first 20 places.
func writeCrowd(ts *testscript.TestScript, _ bool, args []string) {
	keys, files, front, err := visited()
	ts.Check(err)
	ts.Setenv("VKEY", keys.VKey)
	ts.Check(files.Write(ts.MkAbs(args[0])))
	shoppers := "# my own tickets\n\n"
	for n := uint64(0); n < 900; n += 60 {
		secret := roomtest.Secret(n)
		shoppers += []string{
			roomtest.Ticket(statsOrigin, n).String(),
			base64.RawURLEncoding.EncodeToString(secret[:]),
			fmt.Sprintf("  %x\r", secret),
		}[n/60%3] + "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs("shoppers.txt"), []byte(shoppers), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("front.txt"), []byte(front), 0o600))
}

func visited() (keys *roomtest.Keys, files roomtest.Files, front string, err error) {
	keys, err = roomtest.NewKeys(statsOrigin, "honest")
	if err != nil {
		return nil, nil, "", err
	}
	policy := keys.Policy()
	policy.Windows = []fairness.WindowRule{{From: policy.Opens, Length: 10_000}}
	r := roomtest.Open(keys, policy)
	for w := range fairness.Time(3) {
		for i := range fairness.Time(300) {
			r.Join(policy.Opens+w*10_000+i*33, 1)
		}
		r.Settle(policy.Opens + (w+1)*10_000)
	}
	for p := range fairness.Position(20) {
		front += r.At(p+1).String() + "\n"
	}
	files, err = r.Publish()
	return keys, files, front, err
}

// test ID WANT looks up a test in the printed JSON: made, unusual or not-made.
func testOf(ts *testscript.TestScript, _ bool, args []string) {
	var out statsOutput
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &out))
	i := slices.IndexFunc(out.Statistics.Tests, func(t stats.Test) bool { return t.ID == args[0] })
	if i < 0 {
		ts.Fatalf("no test %s", args[0])
	}
	got := "not-made"
	switch t := out.Statistics.Tests[i]; {
	case t.Unusual:
		got = "unusual"
	case t.Made:
		got = "made"
	}
	if got != args[1] {
		ts.Fatalf("test %s: %s", args[0], got)
	}
}

func TestOdds(t *testing.T) {
	for _, c := range []struct {
		p    float64
		want string
	}{
		{1, "nearly all"}, {0.994, "99 of 100"}, {0.5, "50 of 100"}, {0.0149, "1 of 100"}, {0.01,
			"1 of 100"}, {0.0051, "1 of 100"},
		{0.005, "1 of 200"}, {0.00011, "1 of 9,000"}, {1e-6, "1 of 1,000,000"}, {1e-10,
			"less than 1 of 1,000,000,000"}, {0, "less than 1 of 1,000,000,000"},
	} {
		if got := odds(c.p); got != c.want {
			t.Errorf("%v: %q, want %q", c.p, got, c.want)
		}
	}
}

func TestParseTickets(t *testing.T) {
	secret := roomtest.Secret(1)
	want := roomtest.Ticket(statsOrigin, 1)
	for _, c := range []struct {
		content string
		tickets int
		failure string
	}{
		{want.String(), 1, ""},
		{want.String() + "\n" + want.String() + "\n", 2, ""},
		{fmt.Sprintf("# x\n\n\t%x \r\n", secret), 1, ""},
		{base64.RawURLEncoding.EncodeToString(secret[:]), 1, ""},
		{"", 0, "has no tickets"},
		{"# none\n", 0, "has no tickets"},
		{strings.ToUpper(want.String()), 0, "line 1"},
		{want.String() + "\n" + want.String() + "x", 0, "line 2"},
		{fmt.Sprintf("%x", secret[1:]), 0, "line 1"},
		{base64.StdEncoding.EncodeToString(secret[:]), 0, "line 1"},
	} {
		list, err := parseTickets([]byte(c.content), statsOrigin)
		if (err == nil) != (c.failure == "") || err != nil && !strings.Contains(err.Error(), c.failure) ||
			len(list) != c.tickets {
			t.Errorf("%q: %v, %v", c.content, list, err)
		}
		for _, got := range list {
			if got != want {
				t.Errorf("%q: %v", c.content, got)
			}
		}
		if err != nil && len(c.content) > 20 && strings.Contains(err.Error(), c.content[:20]) {
			t.Errorf("the message shows what may be a secret: %v", err)
		}
	}
}

func FuzzParseTickets(f *testing.F) {
	secret := roomtest.Secret(1)
	f.Add([]byte(roomtest.Ticket(statsOrigin, 1).String() + "\n# x\n"))
	f.Add(fmt.Appendf(nil, "%x\r\n\n%s", secret, base64.RawURLEncoding.EncodeToString(secret[:])))
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := parseTickets(content, statsOrigin)
		if (err == nil) != (len(list) > 0) || len(list) > bytes.Count(content, []byte("\n"))+1 {
			t.Fatalf("%d tickets, %v", len(list), err)
		}
		for _, ticket := range list {
			if again, err := fairness.ParseTicket(ticket.String()); err != nil || again != ticket {
				t.Fatalf("%v: %v", ticket, err)
			}
		}
	})
}

// An audit reads in parallel, reads parts again to locate a fault, and may stop early. The collected data is
// the same in all cases.
func TestListenerCollectsInOrder(t *testing.T) {
	_, files, _, err := visited()
	if err != nil {
		t.Fatal(err)
	}
	head, err := verifier.Unverified(files[roomtest.CheckpointPath])
	if err != nil {
		t.Fatal(err)
	}
	var tiles []audit.Tile
	for next := uint64(0); next < head.Size; next += audit.TileWidth {
		tiles = append(tiles, audit.Tile{Level: -1, Index: next / audit.TileWidth,
			Width: int(min(audit.TileWidth, head.Size-next))})
	}
	collected := func(read func(*collectingSource)) *stats.Result {
		l := collect(files, stats.New(stats.Lists{}))
		read(l)
		if len(l.ahead) > 0 {
			t.Errorf("%d bundles are held", len(l.ahead))
		}
		r, err := l.result()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	tile := func(l *collectingSource, tile audit.Tile) {
		if _, err := l.Tile(context.Background(), tile); err != nil {
			t.Error(err)
		}
	}
	want := collected(func(l *collectingSource) {
		for _, one := range tiles {
			tile(l, one)
		}
	})
	if want.Room.Arrivals != 900 || want.Room.Tested != 900 {
		t.Fatalf("%+v", want.Room)
	}
	for name, read := range map[string]func(*collectingSource){
		"backwards": func(l *collectingSource) {
			for _, one := range slices.Backward(tiles) {
				tile(l, one)
			}
		},
		"twice, and hashes between": func(l *collectingSource) {
			for _, one := range tiles {
				tile(l, one)
				tile(l, audit.Tile{Level: 0, Index: one.Index, Width: one.Width})
				tile(l, tiles[0])
			}
		},
		"at once": func(l *collectingSource) {
			var work sync.WaitGroup
			for _, one := range tiles {
				work.Go(func() { tile(l, one) })
			}
			work.Wait()
		},
	} {
		if diff := cmp.Diff(want, collected(read)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A malformed transcript stops the collection, but not the reading.
func TestListenerStopsAtNonsense(t *testing.T) {
	_, files, _, err := visited()
	if err != nil {
		t.Fatal(err)
	}
	second := audit.Tile{Level: -1, Index: 1, Width: audit.TileWidth}
	files[second.Path()] = []byte{0, 1, 'x'}
	l := collect(files, stats.New(stats.Lists{}))
	for i := range uint64(3) {
		if _, err := l.Tile(t.Context(), audit.Tile{Level: -1, Index: 2 - i, Width: audit.TileWidth}); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := l.result(); r != nil || !errors.Is(err, fairness.ErrGrammar) || len(l.ahead) > 0 {
		t.Errorf("%v, %v, %d held", r, err, len(l.ahead))
	}
}

func TestStatsUnwritable(t *testing.T) {
	_, files, _, err := visited()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "sale")
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"stats", dir}, {"stats", dir, "--json"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, broken{}, &stderr,
			func(string) string { return "" }); code != exitUnreadable {
			t.Errorf("%v: exit code %d, %s", args, code, &stderr)
		}
	}
}
