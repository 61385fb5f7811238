package main

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

const mailRoom = `{"slug": "sale", "beacon": "none", "windows": [{"length": "24h"}],
	"methods": [{"name": "account", "kind": "signed", "key": "own-mail"}, {"name": "quiet", "kind": "blind", "key": "own-mail"}],
	"lanes": [{"name": "general", "weight": 1, "needs": ["account"]}, {"name": "quiet", "weight": 1, "needs": ["quiet"]}]}`

var mailedCode = regexp.MustCompile(`[0-9A-Z]{4}(-[0-9A-Z]{4}){3}`)

// address asks for a code at an address, and returns the page that takes it.
func (b *ownBench) address(method, address string, ask url.Values) (status int, page string) {
	b.Helper()
	at := b.url + "/issuer/sale." + method
	if status, page = b.send(at, b.url, ask); status != http.StatusOK {
		return status, page
	}
	flow := html.UnescapeString(flowField.FindStringSubmatch(page)[1])
	return b.send(at+"/prove", b.url, url.Values{"flow": {flow}, "address": {address}})
}

// typeCode sends a code with the page that takes it.
func (b *ownBench) typeCode(method, page, code string) (status int, answer string) {
	b.Helper()
	flow := html.UnescapeString(flowField.FindStringSubmatch(page)[1])
	return b.send(b.url+"/issuer/sale."+method+"/code", b.url, url.Values{"flow": {flow}, "code": {code}})
}

// TestOwnMail has the server's own issuer vouch for addresses: one place for each, with a signature or a blind one. A
// server without a mail server refuses such rooms.
func TestOwnMail(t *testing.T) {
	t.Parallel()
	smtp, mail := receiveMail(t)
	b := newOwn(t, []string{"PROOFLINE_SMTP=smtp://" + smtp + "?from=queue@example.com"})
	if err := b.create(mailRoom); err != nil {
		t.Fatal(err)
	}
	ask := func(n int) url.Values { return url.Values{"ticket": {b.ticket(n).String()}, "lane": {"general"}} }
	confirm := func(n int, address string) url.Values {
		t.Helper()
		status, page := b.address("account", address, ask(n))
		if status != http.StatusOK {
			t.Fatalf("status %d:\n%s", status, page)
		}
		letter := <-mail
		if !strings.Contains(letter, "From: <queue@example.com>") || !strings.Contains(letter, "/r/sale") {
			t.Errorf("mail:\n%s", letter)
		}
		if status, _ := b.typeCode("account", page, "0000-0000-0000-0000"); status != http.StatusForbidden {
			t.Errorf("a wrong code: status %d", status)
		}
		status, page = b.typeCode("account", page, mailedCode.FindString(letter))
		if status != http.StatusOK {
			t.Fatalf("status %d:\n%s", status, page)
		}
		return fieldsOf(page)
	}
	join := func(form url.Values) int {
		t.Helper()
		status, _ := b.send(b.url+"/r/sale/credential", b.url, form)
		return status
	}
	first, again, other := confirm(1, "anna@example.org"), confirm(2, "Anna+more@example.org"), confirm(3, "bob@example.org")
	if first.Get("nullifier") != again.Get("nullifier") || first.Get("nullifier") == other.Get("nullifier") {
		t.Error("an address has two nullifiers, or two addresses have one")
	}
	if status := join(first); status != http.StatusSeeOther {
		t.Errorf("a join: status %d", status)
	}
	if status := join(again); status == http.StatusSeeOther {
		t.Error("an address has two places")
	}
	if status := join(other); status != http.StatusSeeOther {
		t.Errorf("the join of another address: status %d", status)
	}

	b.blindly(mail)
	err := b.manage(http.MethodPost, "/v1/rooms/sale/methods/account/codes", `{"count": 1}`)
	if err == nil || !strings.Contains(err.Error(), "takes no codes") {
		t.Errorf("codes for addresses: %v", err)
	}
	for _, secret := range []string{"anna", "bob@", "carl", b.ticket(1).String()} {
		b.hasNot(secret)
	}

	b.restart()
	if status, _ := b.send(b.url+"/issuer/sale.account", b.url, ask(4)); status != http.StatusNotFound {
		t.Errorf("without a mail server: status %d", status)
	}
	if err := b.create(strings.Replace(mailRoom, `"sale"`, `"other"`, 1)); err == nil || !strings.Contains(err.Error(), "start it with --smtp") {
		t.Errorf("a room without a mail server: %v", err)
	}
	if err := b.manage(http.MethodPost, "/v1/rooms/sale/end", ""); err != nil {
		t.Fatal(err)
	}
	b.audited("account was shown by 2 tickets: the word of the issuer")
	b.stop()
}

// blindly asks for blind signatures with the codes of two mails to one address, and gets one.
func (b *ownBench) blindly(mail <-chan string) {
	b.Helper()
	var state struct {
		Methods []struct{ Name, Key string }
	}
	response, err := http.Get(b.url + "/r/sale/state")
	if err != nil {
		b.Fatal(err)
	}
	err = json.NewDecoder(response.Body).Decode(&state)
	_ = response.Body.Close()
	if err != nil || len(state.Methods) != 2 || len(state.Methods[1].Key) != 512 {
		b.Fatalf("methods %+v, %v", state.Methods, err)
	}
	for n, want := range []int{http.StatusSeeOther, http.StatusConflict} {
		blinded := make([]byte, len(state.Methods[1].Key)/2)
		blinded[0], blinded[len(blinded)-1] = 1, byte(n+2)
		status, page := b.address("quiet", "carl@example.org", url.Values{"blinded": {hex.EncodeToString(blinded)}, "response": {"fragment"}})
		if status != http.StatusOK {
			b.Fatalf("status %d:\n%s", status, page)
		}
		if status, page = b.typeCode("quiet", page, mailedCode.FindString(<-mail)); status != want {
			b.Errorf("blind signature %d: status %d:\n%s", n+1, status, page)
		}
	}
}
