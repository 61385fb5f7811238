package account

import (
	"context"
	"encoding/base32"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/idna"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// maxHosts is the number of custom hosts that an organization may claim.
const maxHosts = 20

// lookupTimeout limits a DNS query.
const lookupTimeout = 5 * time.Second

const wantHost = "must be a host name such as tickets.example.com, not an IP address, without port"

// Host is a custom host claimed by an organization.
type Host struct {
	Host     string     // lower case, Punycode
	Record   string     // name of the TXT record that proves ownership
	Token    string     // value of the TXT record
	Verified *time.Time // nil: not yet, or another organization has since proven ownership
}

func newHost(h pgaccount.Host) Host {
	return Host{h.Host, recordOf(h.Host), h.Token, h.Verified}
}

// recordOf returns the name of a host's TXT record.
func recordOf(host string) string { return "_proofline." + host }

// NormalHost returns a host name in its stored form, in lower case and Punycode; false if it cannot
// be claimed.
func NormalHost(text string) (string, bool) {
	host, err := idna.Lookup.ToASCII(strings.TrimSuffix(strings.TrimSpace(text), "."))
	if again, againErr := idna.Lookup.ToASCII(host); againErr != nil || again != host {
		return "", false // it decodes to a different name
	}
	if err != nil || len(host) > 253 || !strings.Contains(host, ".") || host == "localhost" ||
		strings.HasSuffix(host, ".localhost") {
		return "", false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return "", false
	}
	labels := strings.Split(host, ".")
	if last := labels[len(labels)-1]; !strings.ContainsFunc(last, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return "", false // a number, which some parsers read as an IPv4 address
	}
	ok := !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != ""
	})
	return host, ok
}

// Resolver looks up TXT records. *[net.Resolver] implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
}

// Hosts manages the custom hosts of organizations.
type Hosts struct {
	store    *pgaccount.Hosts
	resolver Resolver
	activity *recorder
	random   random
	own      string // the server's own host, with or without port
	now      func() time.Time
	owners   cache[string, uuid.UUID] // organizations by verified host
}

// Add claims a host for the actor's organization. The host is used once [Hosts.Verify]
// has found its TXT record. It returns [ErrExists] if the organization has claimed it already.
func (hs *Hosts) Add(ctx context.Context, by Actor, text string) (Host, error) {
	if !by.May(Admin) {
		return Host{}, ErrForbidden
	}
	host, ok := NormalHost(text)
	if !ok {
		return Host{}, invalid.Field("host", wantHost)
	}
	if host == hs.ownHost() {
		return Host{}, invalid.Field("host", "is this server's own address, where every room is available already")
	}
	hosts, err := hs.store.List(ctx, by.Org)
	if err != nil {
		return Host{}, err
	}
	if len(hosts) >= maxHosts {
		return Host{}, &LimitError{Max: maxHosts, Objects: "custom hosts"}
	}
	b := make([]byte, 20)
	if _, err := io.ReadFull(hs.random, b); err != nil {
		return Host{}, fmt.Errorf("make token: %w", err)
	}
	token := "proofline-" + strings.ToLower(base32.StdEncoding.EncodeToString(b))
	h := pgaccount.Host{Org: by.Org, Host: host, Token: token}
	if err := hs.store.Add(ctx, h); err != nil {
		return Host{}, mapError(err)
	}
	return newHost(h), hs.activity.record(ctx, by, "host.add", host, nil)
}

// ownHost returns the server's own host name without port.
func (hs *Hosts) ownHost() string {
	host, _, err := net.SplitHostPort(hs.own)
	if err != nil {
		host = hs.own
	}
	return strings.ToLower(host)
}

// List returns the hosts that the actor's organization has claimed, by name.
func (hs *Hosts) List(ctx context.Context, by Actor) ([]Host, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	stored, err := hs.store.List(ctx, by.Org)
	if err != nil {
		return nil, err
	}
	list := make([]Host, len(stored))
	for i, h := range stored {
		list[i] = newHost(h)
	}
	return list, nil
}

// Verify looks up the TXT record of a claimed host. If it contains the organization's token, the
// host becomes that organization's alone. Otherwise Verify returns [ErrUnverified], or
// [ErrNotFound] for a host that was not claimed.
func (hs *Hosts) Verify(ctx context.Context, by Actor, host string) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	h, err := hs.store.Get(ctx, by.Org, host)
	if err != nil {
		return mapError(err)
	}
	asking, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	values, err := hs.resolver.LookupTXT(asking, recordOf(h.Host)+".")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if !slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == h.Token }) {
		return ErrUnverified
	}
	if err := hs.store.Verify(ctx, by.Org, h.Host, hs.now()); err != nil {
		return mapError(err)
	}
	hs.owners.forget()
	return hs.activity.record(ctx, by, "host.verify", h.Host, nil)
}

// Remove removes a claim. It returns [ErrNotFound], or [ErrInUse] while a room that has not
// ended is published under the host.
func (hs *Hosts) Remove(ctx context.Context, by Actor, host string) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	if err := hs.store.Remove(ctx, by.Org, host); err != nil {
		return mapError(err)
	}
	hs.owners.forget()
	return hs.activity.record(ctx, by, "host.remove", host, nil)
}

// Owner returns the organization that owns a verified host, given without port; false if there
// is none. Changes take effect within five seconds.
func (hs *Hosts) Owner(ctx context.Context, host string) (uuid.UUID, bool, error) {
	owners, err := hs.owners.get(hs.now, func() (map[string]uuid.UUID, error) {
		ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
		defer cancel()
		return hs.store.Verified(ctx)
	})
	org, ok := owners[strings.ToLower(strings.TrimSuffix(host, "."))]
	return org, ok, err
}
