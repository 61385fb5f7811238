package demo

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/room/evidence"
)

// witnessNames are the names of the demo's witnesses.
var witnessNames = []string{"first.witness.example", "second.witness.example"}

// thirdParties are the beacon and the witnesses, which others run in a real sale.
// Here they run on the same machine, and the server reaches them over HTTP as usual.
type thirdParties struct {
	beacon    *local.Beacon
	witnesses []*witness.Witness
	chains    []evidence.Chain
	asked     []evidence.Witness
	stores    []*witness.Store
	followed  []string // vkeys
}

// start starts a beacon and two witnesses, which keep their state in dir.
func (o *thirdParties) start(l *listeners, dir string, log *slog.Logger) (err error) {
	o.beacon, err = local.New(local.NewKey(), local.Config{ID: "demo", Genesis: time.Now().Unix() - 60, Period: 1})
	if err != nil {
		return fmt.Errorf("start beacon: %w", err)
	}
	url, err := l.listen(o.beacon.Handler())
	if err != nil {
		return err
	}
	chain := o.beacon.Chain()
	o.chains = []evidence.Chain{{Chain: chain, Rounds: &relay.Client{Chain: chain, URLs: []string{url}, Log: log}}}
	for _, name := range witnessNames {
		if err := o.startWitness(l, name, dir, log); err != nil {
			return fmt.Errorf("start witness: %w", err)
		}
	}
	return nil
}

func (o *thirdParties) startWitness(l *listeners, name, dir string, log *slog.Logger) error {
	seed := make([]byte, 32)
	_, _ = rand.Read(seed) // never fails
	key, err := witness.NewKey(name, seed)
	if err != nil {
		return err
	}
	store, err := witness.OpenStore(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	o.stores = append(o.stores, store)
	w := witness.New(key, store, time.Now, log)
	url, err := l.listen(w.Handler(""))
	if err != nil {
		return err
	}
	o.witnesses = append(o.witnesses, w)
	o.asked = append(o.asked, evidence.Witness{Key: w.Key(),
		Cosigner: &witness.Client{URL: url, Key: w.Key(), Now: time.Now}})
	return nil
}

// follow adds logs to the witnesses, as their operators would.
func (o *thirdParties) follow(vkeys ...string) error {
	for _, vkey := range vkeys {
		if !slices.Contains(o.followed, vkey) {
			o.followed = append(o.followed, vkey)
		}
	}
	logs, err := witness.NewLogs(o.followed...)
	if err != nil {
		return fmt.Errorf("add logs to the witnesses: %w", err)
	}
	for _, w := range o.witnesses {
		w.Follow(logs)
	}
	return nil
}

func (o *thirdParties) stop() {
	for _, store := range o.stores {
		_ = store.Close()
	}
}

// trust returns the flags of an auditor who trusts the beacon and the witnesses.
func (o *thirdParties) trust() []string {
	flags := []string{"--beacon", fmt.Sprintf("%x", o.beacon.Chain().Hash())}
	for _, w := range o.witnesses {
		flags = append(flags, "--witness", w.Key().String())
	}
	return flags
}
