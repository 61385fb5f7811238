package control

import (
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Beacons returns the names of the beacons that new rooms can use, the server's default first.
func (d *Rooms) Beacons() []string {
	var list []string
	for _, chain := range d.Rooms.Chains {
		list = append(list, chain.Name())
	}
	return append(list, fairness.NoBeacon)
}

// BeaconTrouble returns the name of the default beacon, and an error while its relays cannot be reached.
func (d *Rooms) BeaconTrouble() (name string, err error) { return d.Rooms.BeaconTrouble() }

// Witnesses returns the number of the server's witnesses.
func (d *Rooms) Witnesses() int { return len(d.Rooms.Witnesses) }

// BaseURL returns the part of a room's address before the slug; without a host, on the server's own.
func (d *Rooms) BaseURL(host string) string {
	var record pgroom.Room
	if host != "" {
		record.Host = &host
	}
	return d.Rooms.URL(record)
}
