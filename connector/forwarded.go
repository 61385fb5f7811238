package connector

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// origin describes where a request comes from, and by which address the client reached this site.
type origin struct {
	client netip.Addr
	scheme string
	host   string   // host that visitors return to
	hosts  []string // further hosts named by headers of the site's own proxies
}

// originOf determines the origin of a request, from the headers of the site's own proxies if there
// are any.
func originOf(r *http.Request, trusted []netip.Prefix) origin {
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	from := origin{host: r.Host, scheme: "http"}
	if r.TLS != nil {
		from.scheme = "https"
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	from.client = peer.Addr().Unmap()
	if !isTrusted(from.client) {
		return from
	}
	if proto := last(r.Header["X-Forwarded-Proto"]); proto == "https" || proto == "http" {
		from.scheme = proto
	}
	if host := last(r.Header["X-Forwarded-Host"]); host != "" {
		from.host = host
	}
	from.hosts = forwardedHosts(r)
	for _, line := range slices.Backward(r.Header["X-Forwarded-For"]) {
		for _, text := range slices.Backward(strings.Split(line, ",")) {
			a, err := netip.ParseAddr(strings.TrimSpace(text))
			if err != nil {
				return from
			}
			if from.client = a.Unmap(); !isTrusted(from.client) {
				return from
			}
		}
	}
	return from
}

// url returns the scheme and host.
func (o *origin) url() string { return o.scheme + "://" + o.host }

// last returns the last value in all lines of a header.
func last(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	line := lines[len(lines)-1]
	return strings.TrimSpace(line[strings.LastIndexByte(line, ',')+1:])
}

// maxForwardedHosts limits the hosts named in one request. The others are replaced with a malformed
// one.
const maxForwardedHosts = 8

// forwardedHosts returns the hosts in X-Forwarded-Host and Forwarded (RFC 7239) that differ from
// the request's. Proxies pass on what clients wrote there, and sites differ in which of them they
// trust.
func forwardedHosts(r *http.Request) (hosts []string) {
	add := func(host string) {
		host = strings.Trim(strings.TrimSpace(host), `"`)
		if host != "" && host != r.Host {
			hosts = append(hosts, host)
		}
	}
	for _, line := range r.Header["X-Forwarded-Host"] {
		for host := range strings.SplitSeq(line, ",") {
			add(host)
		}
	}
	for _, line := range r.Header["Forwarded"] {
		for pair := range strings.FieldsFuncSeq(line, func(c rune) bool { return c == ',' || c == ';' }) {
			name, host, ok := strings.Cut(strings.TrimSpace(pair), "=")
			if ok && strings.EqualFold(strings.TrimSpace(name), "host") {
				add(host)
			}
		}
	}
	if len(hosts) > maxForwardedHosts {
		return append(hosts[:maxForwardedHosts], "\x00")
	}
	return hosts
}
