package issuer

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// TestVoid voids codes before they are used, for signed and for blind offers, and remembers that.
func TestVoid(t *testing.T) {
	dir := t.TempDir()
	i, store := openIssuer(t, dir)
	key, err := rsa.GenerateKey(rand.Reader, ModulusBits)
	if err != nil {
		t.Fatal(err)
	}
	list, err := i.NewList("early", true, "code")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for batch := range 2 {
		list.NewBatch(int64(1000 + batch))
		for range 3 {
			codes = append(codes, NewCode())
			list.Add(codes[len(codes)-1])
		}
	}
	var text bytes.Buffer
	_, _ = list.WriteTo(&text)
	if list, err = i.ReadList("early", &text); err != nil {
		t.Fatal(err)
	}
	signed, blind := club(), club()
	signed.Once, blind.Name, blind.Key = true, "quiet", key
	blinded := func(n byte) Request { return Request{Blinded: append(make([]byte, key.Size()-1), n)} }
	for _, o := range []*Offer{signed, blind} {
		request := ask
		if o.Key != nil {
			request = blinded
		}
		o.Limit = 2
		accounts, unknown := list.Accounts(append(codes, "unknown", codes[0]))
		if len(accounts) != 6 || unknown != 2 {
			t.Fatalf("%d accounts, %d unknown", len(accounts), unknown)
		}
		if _, err := i.Issue(o, accounts[0], request(1)); err != nil {
			t.Fatal(err)
		}
		for _, check := range []bool{true, true, false} {
			if tally, err := i.Void(o, accounts[:3], check); err != nil || tally != (Tally{Unused: 2, Used: 1}) {
				t.Errorf("%s: check %t: %+v, %v", o.Name, check, tally, err)
			}
		}
		if tally, err := i.Void(o, list.Batch(1), false); err != nil || tally != (Tally{Used: 1, Void: 2}) {
			t.Errorf("%s: again: %+v, %v", o.Name, tally, err)
		}
		if _, err := i.Issue(o, accounts[1], request(2)); !errors.Is(err, ErrVoid) {
			t.Errorf("%s: a void code: %v", o.Name, err)
		}
		if again, err := i.Issue(o, accounts[0], request(1)); err != nil || !again.Again {
			t.Errorf("%s: the code that was used before: %+v, %v", o.Name, again, err)
		}
		if _, err := i.Issue(o, accounts[3], request(3)); err != nil {
			t.Errorf("%s: void codes count for the limit: %v", o.Name, err)
		}
		if n, err := store.count(o); n != 2 || err != nil {
			t.Errorf("%s: %d credentials, %v", o.Name, n, err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	i, store = openIssuer(t, dir)
	for _, o := range []*Offer{signed, blind} {
		batches, err := i.Batches(o, list)
		if want := "[{1000 {0 1 2}} {1001 {2 1 0}}]"; err != nil || fmt.Sprint(batches) != want {
			t.Errorf("%s: after a restart %v, %v; want %s", o.Name, batches, err, want)
		}
		if n, err := store.count(o); n != 2 || err != nil {
			t.Errorf("%s: %d credentials after a restart, %v", o.Name, n, err)
		}
		account, _ := list.Account(codes[2])
		if _, err := i.Issue(o, account, ask(4)); o.Key == nil && !errors.Is(err, ErrVoid) {
			t.Errorf("%s: a void code after a restart: %v", o.Name, err)
		}
	}
	records, err := i.ReadRecords(dir, signed)
	if err != nil {
		t.Fatal(err)
	}
	signed.Once = false
	for n, want := range []bool{true, false} { // used, and void
		account, _ := list.Account(codes[n])
		if records.Has(keyed(i.nullifierKey(signed), signed.Method+"\x00"+account), ask(1)) != want {
			t.Errorf("code %d: issued is not %t", n, want)
		}
	}
}

// TestVoidOrUse: a code that is voided while visitors use it is either used or void.
func TestVoidOrUse(t *testing.T) {
	i, _ := openIssuer(t, t.TempDir())
	o := club()
	o.Once, o.Limit = true, 0
	var accounts []string
	for n := range 50 {
		accounts = append(accounts, fmt.Sprint(n))
	}
	used := 0
	var group sync.WaitGroup
	group.Go(func() {
		for n := range accounts {
			switch _, err := i.Issue(o, accounts[len(accounts)-1-n], ask(1)); {
			case err == nil:
				used++
			case !errors.Is(err, ErrVoid):
				t.Error(err)
			}
		}
	})
	tally, err := i.Void(o, accounts, false)
	group.Wait()
	if err != nil || tally.Used != used || tally.Unused+tally.Used != len(accounts) {
		t.Errorf("%d are used; void says %+v, %v", used, tally, err)
	}
}
