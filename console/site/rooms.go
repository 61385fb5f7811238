package site

import (
	"context"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// place is what is known of a room that rules name.
type place struct {
	isHere  bool        // on this server
	record  pgroom.Room // of a room of the organization, if it is here
	refusal string      // why rules cannot name it; empty: they can
}

// notOurs is said of rooms of others as of rooms that there are not.
const notOurs = "must be the URL of a room of this organization: there is none at this address of this server"

// locate finds the room at a URL.
func (s *Sites) locate(ctx context.Context, org uuid.UUID, text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil {
		return place{refusal: notOurs}, nil //nolint:nilerr // the parser of rules lets none through
	}
	isHere, err := s.isHere(ctx, u)
	if err != nil || !isHere {
		return place{}, err
	}
	record, err := s.Rooms.Options.Rooms.Get(ctx, path.Base(u.Path))
	switch {
	case errors.Is(err, pgroom.ErrNotFound):
		return place{isHere: true, refusal: notOurs}, nil
	case err != nil:
		return place{}, err
	case record.Org != org:
		return place{isHere: true, refusal: notOurs}, nil
	}
	if at := s.Rooms.URL(record); at != text {
		return place{isHere: true, refusal: "must be as the room is published: " + at}, nil
	}
	return place{isHere: true, record: record}, nil
}

// isHere tells whether this server answers at a URL: under its own host, or a
// custom one.
func (s *Sites) isHere(ctx context.Context, u *url.URL) (bool, error) {
	own, err := url.Parse(s.Rooms.PublicURL)
	if err != nil || portOf(u) != portOf(own) {
		return false, nil //nolint:nilerr // a server that has no address is not there
	}
	if isOwn := strings.EqualFold(u.Hostname(), own.Hostname()); isOwn || s.HostOwner == nil {
		return isOwn, nil
	}
	_, isHere, err := s.HostOwner(ctx, strings.ToLower(u.Hostname()))
	return isHere, err
}

// portOf is the port of a URL, which it may leave out.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// Warning is something about rules that may be a mistake.
type Warning = fairness.Problem

// Warnings says what may be wrong with the rules of a site, as its rooms are now.
func (s *Sites) Warnings(ctx context.Context, site Site) ([]Warning, error) {
	d, err := parse(site.Rules)
	if err != nil { // rules of an earlier version of the format
		wrong, ok := errors.AsType[*room.InvalidError](err)
		if !ok {
			return nil, err
		}
		return wrong.Problems, nil
	}
	list := []Warning{}
	for _, name := range d.names() {
		text, err := s.warning(ctx, site.Org, d, d.Rooms[name])
		if err != nil {
			return nil, err
		}
		if text != "" {
			list = append(list, Warning{Field: "rooms." + name, Detail: text})
		}
	}
	return list, nil
}

// warning is what may be wrong with one room of a document; empty for nothing.
func (s *Sites) warning(ctx context.Context, org uuid.UUID, d document, r rules.Room) (string, error) {
	at, err := s.locate(ctx, org, r.URL)
	switch {
	case err != nil:
		return "", err
	case !at.isHere && r.Mode == rules.SafetyNet:
		return "is on another server: connectors that go by these rules report to this one, so its gate never opens for them", nil
	case !at.isHere:
		return "is on another server: nobody here sees whether it exists, and whether it leads visitors back to the site", nil
	case at.refusal != "":
		return "is not there any more: " + r.URL, nil
	case at.record.Ended != nil:
		return "has ended and lets nobody in: name another room, or set its mode to off", nil
	}
	live, err := s.Rooms.Get(ctx, at.record.Slug)
	switch {
	case errors.Is(err, room.ErrNotFound): // its creation was not finished
		return "is not there: " + r.URL, nil
	case errors.Is(err, room.ErrRegressed), errors.Is(err, room.ErrAbandoned):
		return "is stopped and lets no visitor in: records of it are missing", nil
	case err != nil:
		return "", err
	}
	if r.Mode == rules.Closed && live.Snapshot().Phase(live.Now()) == room.PhaseServing {
		return "is closed by these rules and calls people all the same, whom the site does not let in: pause the room, or end it", nil
	}
	return untargeted(d.Hosts, live.Config().Targets), nil
}

// untargeted says which hosts of a site a room does not lead visitors back to.
func untargeted(hosts, targets []string) string {
	var names []string // of hosts that it does lead to
	for _, target := range targets {
		if u, err := url.Parse(target); err == nil {
			names = append(names, u.Hostname())
		}
	}
	if len(hosts) == 0 && len(names) == 0 {
		return "leads admitted visitors nowhere: add the address of the site to the room's targets"
	}
	var missing []string
	for _, host := range hosts {
		isMet := slices.ContainsFunc(names, func(name string) bool {
			ok, _ := path.Match(host, name) // stars alone are special, and hosts have no slash
			return ok
		})
		if !isMet {
			missing = append(missing, host)
		}
	}
	switch len(missing) {
	case 0:
		return ""
	case 1:
		return "does not lead visitors back to " + missing[0] + ": add its address to the room's targets"
	}
	return "does not lead visitors back to " + strings.Join(missing, ", ") + ": add their addresses to the room's targets"
}
