package main

import (
	"context"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness/beacon/relay"
)

// TestBeaconServe runs a beacon, uses it like any drand client, and restarts it.
func TestBeaconServe(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	start := func() (p *process, hash string) {
		p = launch(t, nil, "beacon", "serve", "--addr", "127.0.0.1:0", "--period", "1s", "--key", key)
		p.listens()
		return p, p.until(`chain +([0-9a-f]{64})`, startTime)
	}
	p, hash := start()
	var chain [32]byte
	if _, err := hex.Decode(chain[:], []byte(hash)); err != nil {
		t.Fatal(err)
	}
	c := &relay.Client{URLs: []string{p.url}}
	var err error
	if c.Chain, err = c.Find(t.Context(), chain); err != nil {
		t.Fatal(err)
	}
	if want := p.until(`public key +([0-9a-f]{192})`, startTime); want != hex.EncodeToString(c.Chain.PublicKey[:]) {
		t.Errorf("prints the public key %s, serves %x", want, c.Chain.PublicKey)
	}
	next := c.Chain.After(time.Now().UnixMilli())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	signature, err := c.Wait(ctx, next)
	if err != nil || c.Chain.Verify(next, signature) != nil {
		t.Errorf("round %d: %x, %v", next, signature, err)
	}
	response, err := http.Get(p.until(`info +(http\S+)`, startTime))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response, err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.said(), "proves nothing to others") {
		t.Errorf("no warning: %s", p.said())
	}
	if text, err := os.ReadFile(key); err != nil || strings.Contains(p.said(), strings.TrimSpace(string(text))) {
		t.Errorf("the key is shown (%v): %s", err, p.said())
	}
	p.stop()
	if again, same := start(); same != hash {
		t.Errorf("the chain %s is %s after a restart", hash, same)
	} else {
		again.stop()
	}
}
