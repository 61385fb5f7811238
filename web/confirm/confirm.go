// Package confirm says how visitors get the credentials of a room's lanes on its page: from issuers, and by work.
package confirm

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/page"
)

// Of returns the confirmations that a room's page offers, and the work of lanes that need nothing else. The server's own
// issuer has the name of the organizer, if that is known.
func Of(r *room.Room, organizer string) (list []page.Confirmation, works []page.Work) {
	s := r.Snapshot()
	settings, _ := r.Settings()
	for _, from := range room.Confirmations(s, settings) {
		work := workOf(s, from)
		if from.Method.Name == "" {
			works = append(works, *work)
			continue
		}
		to := from.Issuer.URL
		one := page.Confirmation{Lane: string(from.Lane), Method: from.Method.Name, Issuer: from.Issuer.Name,
			URL: to.String(), Here: strings.HasPrefix(r.URL, to.Scheme+"://"+to.Host+"/"), Work: work}
		if one.Here {
			one.Issuer = cmp.Or(organizer, one.Issuer)
		}
		if one.Blind = from.Method.Kind == credential.Blind; one.Blind {
			one.Key, one.Entry = from.Method.Key, hex.EncodeToString(s.Door.Entry[:])
		}
		list = append(list, one)
	}
	return list, works
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
