package connector

import (
	"net/http"
	"strings"
)

// maxForwardedHosts limits the hosts named in one request. The rest is replaced by
// a malformed one.
const maxForwardedHosts = 8

// forwardedHosts returns the hosts in X-Forwarded-Host and Forwarded (RFC 7239)
// that differ from the request's. Proxies pass on what clients wrote there, and
// sites differ in which of them they believe.
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
