package control

import (
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room/pgroom"
)

// Beacons returns the names of the beacons that new rooms can use, the server's default first.
func (rs *Rooms) Beacons() []string {
	var list []string
	for _, chain := range rs.Rooms.Chains {
		list = append(list, chain.Name())
	}
	return append(list, fairness.NoBeacon)
}

// BeaconErr returns the name of the default beacon, and an error while its relays cannot be reached.
func (rs *Rooms) BeaconErr() (name string, err error) { return rs.Rooms.BeaconErr() }

// Witnesses returns the number of the server's witnesses.
func (rs *Rooms) Witnesses() int { return len(rs.Rooms.Witnesses) }

// BaseURL returns the part of a room's address before the slug; without a host, on the server's own.
func (rs *Rooms) BaseURL(host string) string {
	var record pgroom.Room
	if host != "" {
		record.Host = &host
	}
	return rs.Rooms.URL(record)
}
