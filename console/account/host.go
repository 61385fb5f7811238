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

// lookupTimeout bounds a DNS query.
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
		return "", false // decodes to another name
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

// AddHost claims a host for the actor's organization. The host is used once [Accounts.VerifyHost]
// has found its TXT record. It returns [ErrExists] if the organization has claimed it already.
func (a *Accounts) AddHost(ctx context.Context, by Actor, text string) (Host, error) {
	if !by.May(Admin) {
		return Host{}, ErrForbidden
	}
	host, ok := NormalHost(text)
	if !ok {
		return Host{}, invalid.Field("host", wantHost)
	}
	if host == a.ownHost() {
		return Host{}, invalid.Field("host", "is this server's own address, where every room is available already")
	}
	hosts, err := a.Store.Hosts(ctx, by.Org)
	if err != nil {
		return Host{}, err
	}
	if len(hosts) >= maxHosts {
		return Host{}, ErrTooMany
	}
	b := make([]byte, 20)
	if _, err := io.ReadFull(a.Rand, b); err != nil {
		return Host{}, fmt.Errorf("make token: %w", err)
	}
	token := "proofline-" + strings.ToLower(base32.StdEncoding.EncodeToString(b))
	h := pgaccount.Host{Org: by.Org, Host: host, Token: token}
	if err := a.Store.AddHost(ctx, h); err != nil {
		return Host{}, mapError(err)
	}
	return newHost(h), a.record(ctx, by, "host.add", host, nil)
}

// ownHost returns the server's own host name without port.
func (a *Accounts) ownHost() string {
	host, _, err := net.SplitHostPort(a.Host)
	if err != nil {
		host = a.Host
	}
	return strings.ToLower(host)
}

// Hosts returns the hosts that the actor's organization has claimed, by name.
func (a *Accounts) Hosts(ctx context.Context, by Actor) ([]Host, error) {
	if !by.May(Read) {
		return nil, ErrForbidden
	}
	stored, err := a.Store.Hosts(ctx, by.Org)
	if err != nil {
		return nil, err
	}
	list := make([]Host, len(stored))
	for i, h := range stored {
		list[i] = newHost(h)
	}
	return list, nil
}

// VerifyHost looks up the TXT record of a claimed host. If it contains the organization's token,
// the host becomes that organization's alone. Otherwise VerifyHost returns [ErrUnverified], or
// [ErrNotFound] for a host that was not claimed.
func (a *Accounts) VerifyHost(ctx context.Context, by Actor, host string) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	h, err := a.Store.Host(ctx, by.Org, host)
	if err != nil {
		return mapError(err)
	}
	asking, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	values, err := a.Resolver.LookupTXT(asking, recordOf(h.Host)+".")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if !slices.ContainsFunc(values, func(v string) bool { return strings.TrimSpace(v) == h.Token }) {
		return ErrUnverified
	}
	if err := a.Store.VerifyHost(ctx, by.Org, h.Host, a.Now()); err != nil {
		return mapError(err)
	}
	a.hosts.forget()
	return a.record(ctx, by, "host.verify", h.Host, nil)
}

// RemoveHost removes a claim. It returns [ErrNotFound], or [ErrInUse] while a room that has not
// ended is published under the host.
func (a *Accounts) RemoveHost(ctx context.Context, by Actor, host string) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	if err := a.Store.RemoveHost(ctx, by.Org, host); err != nil {
		return mapError(err)
	}
	a.hosts.forget()
	return a.record(ctx, by, "host.remove", host, nil)
}

// HostOwner returns the organization that owns a verified host, given without port; false if there
// is none. Changes take effect within five seconds.
func (a *Accounts) HostOwner(ctx context.Context, host string) (uuid.UUID, bool, error) {
	owners, err := a.hosts.get(a.Now, func() (map[string]uuid.UUID, error) {
		ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
		defer cancel()
		return a.Store.VerifiedHosts(ctx)
	})
	org, ok := owners[strings.ToLower(strings.TrimSuffix(host, "."))]
	return org, ok, err
}
