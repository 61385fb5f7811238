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
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
)

// place is the result of looking up a room that rules name.
type place struct {
	isHere  bool        // the room is on this server
	record  pgroom.Room // set if the room is here and belongs to the organization
	refusal string      // why rules must not name it; empty: they may
}

// notOurs is the refusal both for rooms of other organizations and for rooms that do not exist.
const notOurs = "must be the URL of a room of this organization: this server has none at this address"

// locate finds the room at a URL.
func (s *Sites) locate(ctx context.Context, org uuid.UUID, text string) (place, error) {
	u, err := url.Parse(text)
	if err != nil {
		return place{refusal: notOurs}, nil //nolint:nilerr // the rules parser refuses such URLs
	}
	isHere, err := s.isHere(ctx, u)
	if err != nil || !isHere {
		return place{}, err
	}
	record, err := s.Records.Get(ctx, path.Base(u.Path))
	switch {
	case errors.Is(err, pgroom.ErrNotFound):
		return place{isHere: true, refusal: notOurs}, nil
	case err != nil:
		return place{}, err
	case record.Org != org:
		return place{isHere: true, refusal: notOurs}, nil
	}
	if published := s.Rooms.URL(record); published != text {
		return place{isHere: true, refusal: "must be the published URL of the room: " + published}, nil
	}
	return place{isHere: true, record: record}, nil
}

// isHere reports whether this server answers at a URL, under its own host or a custom one.
func (s *Sites) isHere(ctx context.Context, u *url.URL) (bool, error) {
	own, err := url.Parse(s.Rooms.PublicURL)
	if err != nil || portOf(u) != portOf(own) {
		return false, nil //nolint:nilerr // a server without an address serves no URL
	}
	if isOwn := strings.EqualFold(u.Hostname(), own.Hostname()); isOwn || s.HostOwner == nil {
		return isOwn, nil
	}
	_, isHere, err := s.HostOwner(ctx, strings.ToLower(u.Hostname()))
	return isHere, err
}

// portOf returns the port of a URL, or the default port of its scheme.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// Warning describes a likely mistake in the rules.
type Warning = invalid.Problem

// Warnings checks the rules of a site against the current state of its rooms.
func (s *Sites) Warnings(ctx context.Context, site Site) ([]Warning, error) {
	d, err := parse(site.Rules)
	if err != nil { // written for an earlier version of the format
		wrong, ok := errors.AsType[*invalid.Error](err)
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

// warning returns the likely mistake in one room of a document, or "".
func (s *Sites) warning(ctx context.Context, org uuid.UUID, d document, r rules.Room) (string, error) {
	at, err := s.locate(ctx, org, r.URL)
	switch {
	case err != nil:
		return "", err
	case !at.isHere && r.Mode == rules.SafetyNet:
		return "is on another server: connectors with these rules report to this server, so the room's gate never opens for them", nil
	case !at.isHere:
		return "is on another server: this server cannot check that it exists and sends visitors back to the site", nil
	case at.refusal != "":
		return "no longer exists: " + r.URL, nil
	case at.record.Ended != nil:
		return "has ended and admits no visitors: name another room, or set its mode to off", nil
	}
	live, err := s.Rooms.Get(ctx, at.record.Slug)
	switch {
	case errors.Is(err, room.ErrNotFound): // the room's creation was not finished
		return "does not exist: " + r.URL, nil
	case errors.Is(err, room.ErrRegressed), errors.Is(err, room.ErrAbandoned):
		return "is stopped and admits no visitors: some of its records are missing", nil
	case err != nil:
		return "", err
	}
	if r.Mode == rules.Closed && live.Snapshot().Phase(live.Now()) == room.PhaseServing {
		return "is closed by these rules but still calls visitors, and the site turns them away: pause or end the room",
			nil
	}
	return untargeted(d.Hosts, live.Config().Targets), nil
}

// untargeted returns a warning that lists the hosts of a site that no target of a room matches, or
// "".
func untargeted(hosts, targets []string) string {
	var names []string // hosts of the targets
	for _, target := range targets {
		if u, err := url.Parse(target); err == nil {
			names = append(names, u.Hostname())
		}
	}
	if len(hosts) == 0 && len(names) == 0 {
		return "has nowhere to send admitted visitors: add the site's address to the room's targets"
	}
	var missing []string
	for _, host := range hosts {
		isMet := slices.ContainsFunc(names, func(name string) bool {
			ok, _ := path.Match(host, name) // * is the only special character, since hosts are validated
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
		return "does not send visitors back to " + missing[0] + ": add its address to the room's targets"
	}
	return "does not send visitors back to " + strings.Join(missing, ", ") +
		": add their addresses to the room's targets"
}
