package demo

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/wire"
)

// desk is an issuer, which vouches for accounts or codes with a key of its own. In a real sale another organization may
// run it, and its pages ask for proof of an account; here it believes each visitor.
type desk struct {
	store  *issuer.Store
	issuer *issuer.Issuer
	offer  issuer.Offer
}

// openDesk opens the issuer, which keeps its records in dir. An account gets a credential for each ticket that asks:
// they all have one nullifier, which a room takes once.
func openDesk(dir string) (*desk, error) {
	secret := make([]byte, issuer.SecretSize)
	_, _ = rand.Read(secret) // never fails
	store, err := issuer.OpenStore(filepath.Join(dir, "issuer"))
	if err != nil {
		return nil, fmt.Errorf("start issuer: %w", err)
	}
	i, err := issuer.New(secret, store)
	if err != nil {
		return nil, fmt.Errorf("start issuer: %w", err)
	}
	return (&desk{store: store, issuer: i}).offering("account"), nil
}

// offering returns the issuer with another method, which has nullifiers of its own.
func (d *desk) offering(method string) *desk {
	lanes := []string{string(fairness.General)}
	return &desk{d.store, d.issuer, issuer.Offer{Name: method, Method: method, Lanes: lanes}}
}

func (d *desk) close() { _ = d.store.Close() }

// guard makes the room's configuration need a credential of the issuer for each join.
func (d *desk) guard(config map[string]any) {
	config["methods"] = []credential.Method{d.issuer.Method(&d.offer)}
	config["lanes"] = []map[string]any{{"name": fairness.General, "weight": 1, "needs": []string{d.offer.Method}}}
}

// serve makes the issuer vouch for visitors of a room.
func (d *desk) serve(ctx context.Context, r *demoRoom) (err error) {
	d.offer.Room, err = r.entry(ctx)
	return err
}

// entry returns the hash of the room's first entry.
func (r *demoRoom) entry(ctx context.Context) (hash [32]byte, err error) {
	var state wire.State
	if _, err := r.visitor.Call(ctx, http.MethodGet, "/state", nil, &state); err != nil {
		return hash, err
	}
	entry, err := hex.DecodeString(state.Entry)
	if err != nil || len(entry) != len(hash) {
		return hash, fmt.Errorf("the room's first entry has the hash %q", state.Entry)
	}
	return [32]byte(entry), nil
}

// vouch returns a credential of an account for a ticket.
func (d *desk) vouch(account string, t fairness.Ticket) (credential.Credential, error) {
	issued, err := d.issuer.Issue(&d.offer, account, issuer.Request{Lane: string(fairness.General), Ticket: t})
	if err != nil {
		return credential.Credential{}, fmt.Errorf("vouch for %s: %w", account, err)
	}
	return credential.Credential{Method: d.offer.Method, Nullifier: issued.Nullifier, Evidence: issued.Evidence}, nil
}
