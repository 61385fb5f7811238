package control

import (
	"cmp"
	"context"
	"slices"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room/setting"
)

// IssuerKey is a key that a method of a new room can have.
type IssuerKey struct{ Key, Label string }

// IssuerKeys lists keys of issuers that are known: those of the server's own issuer, as far as the server has what they
// need, and those of other issuers in rooms of the organization that have not ended.
func (rs *Rooms) IssuerKeys(ctx context.Context, actor account.Actor) ([]IssuerKey, error) {
	var list []IssuerKey
	for _, key := range setting.OwnKeys {
		if rs.Issuer != nil && rs.Issuer.Lacks(key) == "" {
			list = append(list, IssuerKey{key, setting.OwnKeyLabel(key)})
		}
	}
	page, err := rs.List(ctx, actor, Filter{})
	if err != nil {
		return nil, err
	}
	for _, summary := range page.List {
		if summary.Snapshot == nil {
			continue
		}
		r, err := rs.Room(ctx, actor, summary.Slug)
		if err != nil {
			return nil, err
		}
		settings, _ := r.Settings()
		for _, m := range r.Policy().Methods {
			isListed := slices.ContainsFunc(list, func(k IssuerKey) bool { return k.Key == m.Key })
			if m.Key == "" || isListed || rs.ownKey(r, m) != "" {
				continue
			}
			from, _ := settings.Issuer(m.Name)
			name := cmp.Or(from.Name, m.Name)
			list = append(list, IssuerKey{m.Key, name + ", as in " + summary.Slug + " (" + m.Key[:8] + "…)"})
		}
	}
	return list, nil
}
