// Package address checks the URLs of servers.
package address

import (
	"net"
	"net/url"
	"strings"
)

// IsSafe reports whether requests to a URL are safe from eavesdroppers: it is https, or on this
// machine.
func IsSafe(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// OriginOf returns the scheme and host of a URL; empty: the URL is malformed or names a user.
func OriginOf(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}
