// Package confirm says how a room's page leads visitors to the issuers of credentials.
package confirm

import (
	"cmp"
	"encoding/hex"
	"strings"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/page"
)

// Of returns the confirmations that a room's page offers. The server's own issuer has the name of the organizer, if
// that is known.
func Of(r *room.Room, organizer string) (list []page.Confirmation) {
	s := r.Snapshot()
	settings, _ := r.Settings()
	for _, from := range room.Confirmations(s, settings) {
		to := from.Issuer.URL
		one := page.Confirmation{Lane: string(from.Lane), Method: from.Method.Name, Issuer: from.Issuer.Name,
			URL: to.String(), Here: strings.HasPrefix(r.URL, to.Scheme+"://"+to.Host+"/")}
		if one.Here {
			one.Issuer = cmp.Or(organizer, one.Issuer)
		}
		if one.Blind = from.Method.Kind == credential.Blind; one.Blind {
			one.Key, one.Entry = from.Method.Key, hex.EncodeToString(s.Door.Entry[:])
		}
		list = append(list, one)
	}
	return list
}
