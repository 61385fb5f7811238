package remote

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/server"
)

const defaultServer = "http://127.0.0.1:8080"

// NotRunning is a hint for errors of requests to the server.
const NotRunning = "is the server running? proofline serve; or name another with --server"

// Server holds the flags that name a server.
type Server struct{ address, data string }

// AddFlags adds the flags.
func (s *Server) AddFlags(flags *pflag.FlagSet, t *cli.Terminal) {
	flags.StringVar(&s.address, "server", "", "`URL` of the server (default: that of DIR, else "+defaultServer+")")
	flags.StringVar(&s.data, "data", t.DataDir(), "data `DIR` of a server on this machine")
	cli.InEnv(flags, "server", "data")
}

// URL returns the address of the server.
func (s *Server) URL() (*url.URL, error) {
	address := s.address
	if address == "" {
		kept, err := os.ReadFile(filepath.Join(s.data, server.AddressFile)) //nolint:gosec // the user names it
		if address = strings.TrimSpace(string(kept)); err != nil || address == "" {
			address = defaultServer
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, cli.Usage(fmt.Errorf("--server: %q is not the URL of a server", address),
			"give one such as https://queue.example.com")
	}
	return u, nil
}

// IsLoopback reports whether a host is this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
