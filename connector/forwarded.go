package connector

import (
	"net/http"
	"strings"
)

// maxForwardedHosts is how many hosts may be named in one request. Of more, the
// rest counts as one that is malformed.
const maxForwardedHosts = 8

// forwardedHosts returns the hosts that X-Forwarded-Host and Forwarded (RFC 7239)
// name, other than that of the request. Proxies pass on what clients wrote there,
// sites differ in which of them they believe, and some believe Host alone.
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
			if name, host, ok := strings.Cut(strings.TrimSpace(pair), "="); ok && strings.EqualFold(strings.TrimSpace(name), "host") {
				add(host)
			}
		}
	}
	if len(hosts) > maxForwardedHosts {
		return append(hosts[:maxForwardedHosts], "\x00")
	}
	return hosts
}
