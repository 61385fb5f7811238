package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/proofline/proofline/audit/witness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/room"
)

// witnessNames are the names of the demo's witnesses.
var witnessNames = []string{"first.witness.example", "second.witness.example"}

// thirdParties are the beacon and the witnesses, which others run in a real sale.
// Here they run on the same machine, and the server reaches them over HTTP as usual.
type thirdParties struct {
	beacon    *local.Beacon
	witnesses []*witness.Witness
	chains    []room.Chain
	asked     []room.Witness
	stops     []func()
}

// startThirdParties starts a beacon and two witnesses.
func (d *demo) startThirdParties() (err error) {
	o := &d.thirdParties
	o.beacon, err = local.New(local.NewKey(), local.Config{ID: "demo", Genesis: time.Now().Unix() - 60, Period: 1})
	if err != nil {
		return fmt.Errorf("start beacon: %w", err)
	}
	url, err := o.listen(o.beacon.Handler())
	if err != nil {
		return err
	}
	chain := o.beacon.Chain()
	o.chains = []room.Chain{{Chain: chain, Rounds: &relay.Client{Chain: chain, URLs: []string{url}, Log: d.Log}}}
	for _, name := range witnessNames {
		if err := d.startWitness(name); err != nil {
			return fmt.Errorf("start witness: %w", err)
		}
	}
	return nil
}

func (d *demo) startWitness(name string) error {
	o, seed := &d.thirdParties, make([]byte, 32)
	_, _ = rand.Read(seed) // never fails
	key, err := witness.NewKey(name, seed)
	if err != nil {
		return err
	}
	store, err := witness.OpenStore(filepath.Join(d.dir, name))
	if err != nil {
		return err
	}
	o.stops = append(o.stops, func() { _ = store.Close() })
	w := witness.New(key, store, time.Now, d.Log)
	url, err := o.listen(w.Handler(""))
	if err != nil {
		return err
	}
	o.witnesses = append(o.witnesses, w)
	o.asked = append(o.asked, room.Witness{Key: w.Key(),
		Cosigner: &witness.Client{URL: url, Key: w.Key(), Now: time.Now}})
	return nil
}

// listen serves a handler on a free port of this machine.
func (o *thirdParties) listen(h http.Handler) (url string, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // until stop closes it
	}()
	o.stops = append(o.stops, func() {
		_ = server.Close()
		<-ended
	})
	return "http://" + l.Addr().String(), nil
}

// follow adds the room's log to the witnesses, as their operators would.
func (o *thirdParties) follow(vkey string) error {
	logs, err := witness.NewLogs(vkey)
	if err != nil {
		return fmt.Errorf("add the room's log to the witnesses: %w", err)
	}
	for _, w := range o.witnesses {
		w.Follow(logs)
	}
	return nil
}

func (o *thirdParties) stop() {
	for i := len(o.stops) - 1; i >= 0; i-- {
		o.stops[i]()
	}
}

// trust returns the flags of an auditor who trusts beacon and witnesses.
func (o *thirdParties) trust() []string {
	flags := []string{"--beacon", fmt.Sprintf("%x", o.beacon.Chain().Hash())}
	for _, w := range o.witnesses {
		flags = append(flags, "--witness", w.Key().String())
	}
	return flags
}
