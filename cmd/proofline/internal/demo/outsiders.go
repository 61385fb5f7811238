package demo

import (
	"context"
	"crypto/rand"
	"errors"
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

// witnessNames are those of the witnesses of the demo.
var witnessNames = []string{"first.witness.example", "second.witness.example"}

// outsiders are those whom a sale should not run itself, and who here run on
// the same machine, each behind HTTP as a stranger would be.
type outsiders struct {
	beacon    *local.Beacon
	witnesses []*witness.Witness
	chains    []room.Chain
	asked     []room.Witness
	stops     []func()
}

// startOutsiders starts a beacon and two witnesses.
func (d *demo) startOutsiders() (err error) {
	o := &d.outsiders
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
	o, seed := &d.outsiders, make([]byte, 32)
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
	o.asked = append(o.asked, room.Witness{Key: w.Key(), Cosigner: &witness.Client{URL: url, Key: w.Key(), Now: time.Now}})
	return nil
}

// listen serves on a free port of this machine.
func (o *outsiders) listen(h http.Handler) (url string, err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // until it is closed
	}()
	o.stops = append(o.stops, func() {
		_ = server.Close()
		<-ended
	})
	return "http://" + l.Addr().String(), nil
}

// follow has the witnesses follow the room, as their operators would decide.
func (o *outsiders) follow(vkey string) error {
	logs, err := witness.NewLogs(vkey)
	if err != nil {
		return errors.Join(errors.New("let witnesses follow the room"), err)
	}
	for _, w := range o.witnesses {
		w.Follow(logs)
	}
	return nil
}

func (o *outsiders) stop() {
	for i := len(o.stops) - 1; i >= 0; i-- {
		o.stops[i]()
	}
}

// trust are the flags of an auditor who takes them for independent.
func (o *outsiders) trust() []string {
	flags := []string{"--beacon", fmt.Sprintf("%x", o.beacon.Chain().Hash())}
	for _, w := range o.witnesses {
		flags = append(flags, "--witness", w.Key().String())
	}
	return flags
}
