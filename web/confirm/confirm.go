// Package confirm says how visitors get credentials on a room's page: from issuers, and by work.
package confirm

import (
	"cmp"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/page"
)

// outage reports whether the issuer of a confirmation does not answer.
type outage = func(*room.Room, *room.Confirmation) bool

// Add adds the confirmations that a room's page offers a visitor, and the work of lanes that need nothing else. A
// ticket that waits in an open window can get more lots, and other visitors a place: in the lane that needs nothing,
// with one more lot. isAway is nil if nothing is known of issuers.
func Add(v *page.View, r *room.Room, t fairness.Ticket, isAway outage) {
	s := r.Snapshot()
	settings, _ := r.Settings()
	if v.State == page.Waiting {
		if _, more := r.Lots(t); v.Now.Before(v.Ticket.Window.To) {
			addLots(v, r, isAway, room.MoreLots(s, settings, fairness.Lane(v.Ticket.Lane), more))
		}
		return
	}
	var needed []string
	for _, from := range room.Confirmations(s, settings) {
		work := workOf(s, from)
		if from.Method.Name == "" {
			v.Works = append(v.Works, *work)
			continue
		}
		one := way(v, r, &from, isAway)
		one.Work = work
		needed = append(needed, one.Method)
		v.Confirmations = append(v.Confirmations, one)
	}
	if open := s.OpenLane(); v.Ticket == nil && open != "" {
		_, more := r.Lots(t)
		// what such a lane needs counts there, too
		more = slices.DeleteFunc(more, func(m string) bool { return slices.Contains(needed, m) })
		addLots(v, r, isAway, room.MoreLots(s, settings, open, more))
	}
}

func addLots(v *page.View, r *room.Room, isAway outage, list []room.Confirmation) {
	for _, from := range list {
		one := way(v, r, &from, isAway)
		one.IsLot = true
		v.Confirmations = append(v.Confirmations, one)
	}
}

// way returns the way to an issuer. The server's own has the name of the organizer, if that is known.
func way(v *page.View, r *room.Room, from *room.Confirmation, isAway outage) page.Confirmation {
	to := from.Issuer.URL
	one := page.Confirmation{Lane: string(from.Lane), Method: from.Method.Name, Issuer: from.Issuer.Name,
		URL: to.String(), Here: strings.HasPrefix(r.URL, to.Scheme+"://"+to.Host+"/")}
	if one.Here {
		one.Issuer = cmp.Or(v.Room.Organizer, one.Issuer)
	}
	one.Away = isAway != nil && isAway(r, from)
	proof, at := from.Issuer.Proof, one.Issuer
	if own, place := ownProof(r, from); own != "" {
		proof, at = own, place
	}
	one.Need, one.At = string(proof), at
	if one.Blind = from.Method.Kind == credential.Blind; one.Blind {
		entry := r.Snapshot().Door.Entry
		one.Key, one.Entry = from.Method.Key, hex.EncodeToString(entry[:])
	}
	return one
}

// ownProof returns what visitors need for a method of the server's own issuer; empty: it is another issuer's.
func ownProof(r *room.Room, from *room.Confirmation) (p setting.Proof, at string) {
	if r.Issuer == nil || r.Issuer.Page(r.Slug, from.Method.Name) != from.Issuer.URL.String() {
		return "", ""
	}
	return r.Issuer.Proof(r.Slug, from.Method)
}

// workOf returns the work that a lane needs; nil: none.
func workOf(s *room.Snapshot, of room.Confirmation) *page.Work {
	if of.Work.Name == "" {
		return nil
	}
	w := &page.Work{Lane: string(of.Lane), Method: of.Work.Name, Bits: of.Work.Bits, Needs: of.Method.Name,
		Entry: hex.EncodeToString(s.Door.Entry[:])}
	if s.Door.Work != nil {
		w.Due, w.Round = s.Door.Work.Due, hex.EncodeToString(s.Door.Work.Signature)
	}
	return w
}
