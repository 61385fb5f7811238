package transcript

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/cmd/proofline/internal/api"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/internal/wire"
)

const origin = "example.com/r/demo"

// publish serves a log of arrivals over HTTP, and returns the responses to their joins.
func publish(t *testing.T, operator string, arrivals int) (url string, keys *roomtest.Keys, answers []api.Joined) {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, operator)
	if err != nil {
		t.Fatal(err)
	}
	var entries [][]byte
	var leaves []audit.Hash
	for i := range arrivals {
		answers = append(answers, api.Joined{Joined: wire.Joined{
			Ticket: roomtest.Ticket(origin, uint64(i)).String(), Index: uint64(i), Window: 2, Seq: uint32(i),
			Time: time.UnixMilli(int64(1000 + i)),
		}})
		entry, err := answers[i].Entry()
		if err != nil {
			t.Fatal(err)
		}
		entries, leaves = append(entries, entry), append(leaves, audit.LeafHash(entry))
	}
	ext := new(audit.Tree).Extend(leaves)
	signed, err := audit.SignCheckpoint(audit.Checkpoint{Origin: origin, Size: ext.Size(), Root: ext.Root()},
		keys.Signer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		receipt, err := ext.AppendProofText(nil, uint64(i), signed)
		if err != nil {
			t.Fatal(err)
		}
		answers[i].Receipt = string(receipt)
	}
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := files.Get(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	return s.URL, keys, answers
}

// TestCheckReceipt: every honest response passes, and no response with a change does.
func TestCheckReceipt(t *testing.T) {
	url, keys, answers := publish(t, "honest", 300)
	tr, err := Read(t.Context(), url, keys.VKey)
	if err != nil || len(tr.Entries) != 300 {
		t.Fatalf("%d entries: %v", len(tr.Entries), err)
	}
	for i := range answers {
		if err := tr.CheckReceipt(&answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	_, _, others := publish(t, "other", 300)
	for name, change := range map[string]func(*api.Joined){
		"ticket":           func(j *api.Joined) { j.Ticket = answers[8].Ticket },
		"no ticket":        func(j *api.Joined) { j.Ticket = "nobody" },
		"index":            func(j *api.Joined) { j.Index++ },
		"window":           func(j *api.Joined) { j.Window++ },
		"seq":              func(j *api.Joined) { j.Seq++ },
		"time":             func(j *api.Joined) { j.Time = j.Time.Add(time.Millisecond) },
		"no receipt":       func(j *api.Joined) { j.Receipt = "" },
		"another receipt":  func(j *api.Joined) { j.Receipt = answers[8].Receipt },
		"another operator": func(j *api.Joined) { j.Receipt = others[7].Receipt },
	} {
		j := answers[7]
		change(&j)
		if err := tr.CheckReceipt(&j); !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v, want ErrMismatch", name, err)
		}
	}
	short := &Transcript{Entries: tr.Entries[:7], key: tr.key}
	if err := short.CheckReceipt(&answers[7]); !errors.Is(err, ErrMismatch) {
		t.Errorf("dropped arrival: %v, want ErrMismatch", err)
	}
	without := append(append([][]byte{}, tr.Entries[:7]...), tr.Entries[8:]...)
	forged := &Transcript{Entries: without, key: tr.key}
	if err := forged.CheckReceipt(&answers[7]); !errors.Is(err, ErrMismatch) {
		t.Errorf("replaced arrival: %v, want ErrMismatch", err)
	}
}

func TestReadRefuses(t *testing.T) {
	url, keys, _ := publish(t, "honest", 1)
	_, other, _ := publish(t, "other", 1)
	if _, err := Read(t.Context(), url, other.VKey); !errors.Is(err, audit.ErrSignature) {
		t.Errorf("another operator's key: %v, want ErrSignature", err)
	}
	if _, err := Read(t.Context(), url+"/below", keys.VKey); err == nil {
		t.Error("read a transcript from a URL that has none")
	}
	if _, err := Read(t.Context(), url, "key"); err == nil {
		t.Error("accepted a malformed key")
	}
}

// TestEntry: the response to a join gives the arrival's entry in the transcript.
func TestEntry(t *testing.T) {
	j := api.Joined{Joined: wire.Joined{
		Ticket: roomtest.Ticket(origin, 1).String(), Window: 3, Seq: 4, Time: time.UnixMilli(5),
	}}
	text, err := j.Entry()
	if want := "arrive 5 3 4 " + j.Ticket + " general"; string(text) != want || err != nil {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
	j.Ticket = "nobody"
	if _, err := j.Entry(); !errors.Is(err, fairness.ErrTicket) {
		t.Errorf("malformed ticket: %v, want ErrTicket", err)
	}
}
