// Package https lets commands speak TLS themselves: with a certificate in files, or with one that they get from an
// authority by ACME.
package https

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/idna"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/listen"
)

// CacheDir is the directory of keys and certificates that an authority has signed, in the data directory.
const CacheDir = "acme"

// Flags are the flags about TLS. All can be set in the environment.
type Flags struct {
	cert, key        string
	hosts            []string
	email, directory string
	redirect         string
	hsts             time.Duration
}

// Add adds the flags.
func (f *Flags) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.cert, "tls-cert", "",
		"serve https with the certificate and chain in this `FILE`, PEM, read again when it changes (default plain HTTP)")
	flags.StringVar(&f.key, "tls-key", "", "`FILE` of its key, PEM")
	flags.StringSliceVar(&f.hosts, "acme-host", nil,
		"serve https with a certificate for these `HOSTS`, from an authority that speaks ACME and whose terms you accept")
	flags.StringVar(&f.email, "acme-email", "", "`ADDRESS` at which the authority can reach you")
	flags.StringVar(&f.directory, "acme-directory", autocert.DefaultACMEDirectory, "`URL` of the authority's directory")
	flags.StringVar(&f.redirect, "redirect-http", "",
		"redirect plain HTTP on this `HOST:PORT` to https, and answer the authority's challenges there")
	flags.DurationVar(&f.hsts, "hsts", 0,
		"`TIME` for which browsers are to use nothing but https, such as 8760h; 0: browsers are told nothing")
	cli.InEnv(flags, "tls-cert", "tls-key", "acme-host", "acme-email", "acme-directory", "redirect-http", "hsts")
}

// Server is how a command speaks TLS. A nil Server speaks plain HTTP.
type Server struct {
	// Config is for listeners.
	Config *tls.Config
	// HSTS is the value of Strict-Transport-Security; empty: there is no such header.
	HSTS string
	// Host is the first host of an ACME certificate; empty: the certificate is in files.
	Host string

	redirect   string
	challenges func(http.Handler) http.Handler // answers challenges before the redirect
	files      *certificate                    // nil: the certificate is by ACME
	issued     issued
}

// Open returns what the flags say; nil: plain HTTP. Keys and certificates of an authority are kept in the data
// directory.
func (f *Flags) Open(data string, log *slog.Logger) (*Server, error) {
	isFiles, isACME := f.cert != "" || f.key != "", len(f.hosts) > 0
	switch {
	case isFiles && (f.cert == "" || f.key == ""):
		return nil, cli.Usage(errors.New("--tls-cert and --tls-key belong together"), "give both, or neither")
	case isFiles && isACME:
		return nil, cli.Usage(errors.New("--acme-host and --tls-cert exclude each other"), "give one of them")
	case !isFiles && !isACME && (f.redirect != "" || f.hsts != 0):
		return nil, cli.Usage(errors.New("--redirect-http and --hsts need https"),
			"give --tls-cert or --acme-host, too")
	case f.hsts < 0:
		return nil, cli.Usage(errors.New("--hsts must not be negative"), "give a time such as 8760h, a year")
	case !isFiles && !isACME:
		return nil, nil //nolint:nilnil // plain HTTP
	}
	s := &Server{redirect: f.redirect, challenges: func(next http.Handler) http.Handler { return next }}
	if f.hsts > 0 {
		s.HSTS = "max-age=" + strconv.FormatInt(int64(f.hsts/time.Second), 10)
	}
	if isACME {
		return s, f.useACME(s, data)
	}
	var err error
	if s.files, err = loadCertificate(f.cert, f.key, log); err != nil {
		return nil, cli.Failed(err,
			"give with --tls-cert and --tls-key the PEM files of a certificate and its key, the server's certificate first")
	}
	s.Config = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.files.get,
		NextProtos: []string{"h2", "http/1.1"}}
	return s, nil
}

// useACME gets certificates from an authority, when the first client asks for a host, and 30 days before they expire.
func (f *Flags) useACME(s *Server, data string) error {
	for _, host := range f.hosts {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil || net.ParseIP(host) != nil {
			return cli.Usage(fmt.Errorf("--acme-host: %q is not the name of a host", host),
				"give names such as queue.example.com, without https and port")
		}
		if s.Host == "" {
			s.Host = ascii
		}
	}
	m := &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(filepath.Join(data, CacheDir)),
		HostPolicy: autocert.HostWhitelist(f.hosts...), Email: f.email, Client: &acme.Client{DirectoryURL: f.directory},
	}
	s.Config = m.TLSConfig()
	s.Config.MinVersion = tls.VersionTLS12
	s.Config.GetCertificate = s.issued.remember(m.GetCertificate)
	if s.redirect != "" {
		s.challenges = m.HTTPHandler
	}
	return nil
}

// Reloading returns what SIGHUP reads again: the files of the certificate. ACME renews by itself.
func (s *Server) Reloading() []cli.Reloading {
	if s == nil || s.files == nil {
		return nil
	}
	return []cli.Reloading{{Name: "certificate", Reload: func(context.Context) error { return s.files.reload() }}}
}

// Scheme returns the scheme of the command's URLs.
func (s *Server) Scheme() string {
	if s == nil {
		return "http"
	}
	return "https"
}

// URL returns the URL of the first host for a listener's address.
func (s *Server) URL(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.Port != 443 {
		return "https://" + net.JoinHostPort(s.Host, strconv.Itoa(tcp.Port))
	}
	return "https://" + s.Host
}

// Wrap returns a listener that speaks TLS.
func (s *Server) Wrap(l net.Listener) net.Listener {
	if s == nil {
		return l
	}
	return tls.NewListener(l, s.Config)
}

// Handle returns a handler whose answers have the header of HSTS.
func (s *Server) Handle(next http.Handler) http.Handler {
	if s == nil || s.HSTS == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", s.HSTS)
		next.ServeHTTP(w, r)
	})
}

// Redirect redirects plain HTTP to the address of https until ctx ends, if a flag says so, and returns the address that
// it listens on; empty: none. done is closed when it has ended.
func (s *Server) Redirect(ctx context.Context, to net.Addr) (on string, done <-chan struct{}, err error) {
	ended := make(chan struct{})
	if s == nil || s.redirect == "" {
		close(ended)
		return "", ended, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.redirect)
	if err != nil {
		return "", nil, cli.Failed(fmt.Errorf("--redirect-http: %w", err),
			"choose an address at which no other program listens; ports below 1024 need CAP_NET_BIND_SERVICE")
	}
	server := &http.Server{
		Handler: s.challenges(redirect(to)), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		defer close(ended)
		_ = listen.Serve(ctx, l, time.Second, server) // until ctx ends
	}()
	return listen.Address(l.Addr()), ended, nil
}

// redirect returns a handler that redirects plain HTTP to https, at the port of
// the given address.
func redirect(to net.Addr) http.Handler {
	port := ""
	if tcp, ok := to.(*net.TCPAddr); ok && tcp.Port != 443 {
		port = fmt.Sprintf(":%d", tcp.Port)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, ok := hostname(r.Host)
		if !ok || r.URL.Path == "" || r.URL.Path[0] != '/' {
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "malformed request", http.StatusBadRequest)
			return
		}
		target := r.URL.EscapedPath()
		if r.URL.RawQuery != "" {
			target += "?" + r.URL.RawQuery
		}
		w.Header().Set("Connection", "close")
		status := http.StatusPermanentRedirect
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			status = http.StatusMovedPermanently
		}
		w.Header().Set("Location", "https://"+host+port+target)
		w.WriteHeader(status)
	})
}

// hostname returns the host in a Host header without its port. It returns false if the host is not
// valid in a URL.
func hostname(host string) (string, bool) {
	u, err := url.Parse("http://" + host)
	if err != nil || u.Host != host || u.Hostname() == "" || strings.ContainsAny(host, `\%'"<>`) {
		return "", false
	}
	if strings.Contains(u.Hostname(), ":") {
		return "[" + u.Hostname() + "]", true
	}
	return u.Hostname(), true
}
