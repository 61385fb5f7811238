package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
)

const puzzleRoom = `{"slug": "sale", "beacon": "none", "windows": [{"length": "24h"}],
	"methods": [{"name": "presale", "kind": "signed", "key": "own"}, {"name": "human", "kind": "signed", "key": "own-puzzle"}],
	"lanes": [{"name": "general", "weight": 1}, {"name": "people", "weight": 3, "needs": ["human"]}], "lots": ["human"]}`

var (
	puzzleLegend = regexp.MustCompile(`<legend>(.*)</legend>`)
	puzzleOption = regexp.MustCompile(`name="pick" value="(\d+)"><span>(.*)</span>`)
)

// read solves a puzzle of words as a reader does, and returns the form with the solution.
func (b *ownBench) read(page string) url.Values {
	b.Helper()
	text, err := os.ReadFile("../../web/issuer/messages/en.json")
	if err != nil {
		b.Fatal(err)
	}
	var words map[string]string
	if err := json.Unmarshal(text, &words); err != nil {
		b.Fatal(err)
	}
	legend, flow := puzzleLegend.FindStringSubmatch(page), flowField.FindStringSubmatch(page)
	if legend == nil || flow == nil {
		b.Fatalf("no puzzle:\n%s", page)
	}
	form := url.Values{"flow": {html.UnescapeString(flow[1])}}
	for key, question := range words {
		if !strings.HasPrefix(key, "puzzle.") || question != legend[1] {
			continue
		}
		known := strings.Split(words[key+"_words"], ", ")
		for _, option := range puzzleOption.FindAllStringSubmatch(page, -1) {
			if slices.Contains(known, option[2]) {
				form.Add("pick", option[1])
			}
		}
	}
	return form
}

// puzzle opens the puzzle for a ticket.
func (b *ownBench) puzzle(ticket fairness.Ticket, lane string) (status int, page string) {
	b.Helper()
	return b.send(b.url+"/issuer/sale.human", b.url, url.Values{"ticket": {ticket.String()}, "lane": {lane}})
}

// solve returns the form that goes back to the room.
func (b *ownBench) solve(ticket fairness.Ticket, lane string) url.Values {
	b.Helper()
	_, page := b.puzzle(ticket, lane)
	status, page := b.send(b.url+"/issuer/sale.human/puzzle", b.url, b.read(page))
	if status != http.StatusOK {
		b.Fatalf("status %d:\n%s", status, page)
	}
	return fieldsOf(page)
}

// call sends JSON to the room.
func (b *ownBench) call(path string, body any) (int, string) {
	b.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.Post(b.url+"/r/sale"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// TestOwnPuzzle has the server's own issuer vouch for solved puzzles: for a lane that needs one, and for one more lot
// after a join. Its keys for puzzles and for codes differ.
func TestOwnPuzzle(t *testing.T) {
	t.Parallel()
	b := newOwn(t, nil)
	if err := b.create(puzzleRoom); err != nil {
		t.Fatal(err)
	}
	var state struct {
		Methods []struct{ Name, Key string }
	}
	response, err := http.Get(b.url + "/r/sale/state")
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(response.Body).Decode(&state)
	_ = response.Body.Close()
	if err != nil || len(state.Methods) != 2 || len(state.Methods[1].Key) != 64 || state.Methods[0].Key == state.Methods[1].Key {
		t.Fatalf("methods %+v, %v", state.Methods, err)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/methods/human/codes", `{"count": 1}`); err == nil ||
		!strings.Contains(err.Error(), "takes no codes") {
		t.Errorf("codes for puzzles: %v", err)
	}
	blind := strings.NewReplacer(`"sale"`, `"other"`, `"kind": "signed", "key": "own-puzzle"`, `"kind": "blind", "key": "own-puzzle"`).Replace(puzzleRoom)
	if err := b.create(blind); err == nil || !strings.Contains(err.Error(), "only a signed method") {
		t.Errorf("a blind method with puzzles: %v", err)
	}

	if status, _ := b.send(b.url+"/r/sale/credential", b.url, b.solve(b.ticket(1), "people")); status != http.StatusSeeOther {
		t.Errorf("a join: status %d", status)
	}

	ticket, secret := b.ticket(2), sha256.Sum256(fmt.Append(nil, 2))
	if status, answer := b.call("/join", map[string]any{"ticket": ticket.String()}); status != http.StatusCreated {
		t.Fatalf("a join: status %d %s", status, answer)
	}
	form := b.solve(ticket, "general")
	show := map[string]any{"secret": base64.RawURLEncoding.EncodeToString(secret[:]), "method": "human",
		"nullifier": form.Get("nullifier"), "evidence": form.Get("evidence")}
	if status, answer := b.call("/tickets/"+ticket.String()+"/credentials", show); status != http.StatusCreated {
		t.Errorf("one more lot: status %d %s", status, answer)
	}
	if again := b.solve(ticket, "general"); again.Get("nullifier") != form.Get("nullifier") || again.Get("evidence") != form.Get("evidence") {
		t.Error("a ticket has two credentials")
	}
	for _, secret := range []string{ticket.String(), b.ticket(1).String()} {
		b.hasNot(secret)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/end", ""); err != nil {
		t.Fatal(err)
	}
	b.audited("human was shown by 2 tickets: the word of the issuer")
	b.stop()
}
