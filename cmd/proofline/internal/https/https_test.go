package https

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/proofline/proofline/internal/certtest"
)

var quiet = slog.New(slog.DiscardHandler)

// TestNewCertificate tests that a renewed certificate is used, and an invalid one is not: when a client connects, and
// when the files are reloaded.
func TestNewCertificate(t *testing.T) {
	t.Parallel()
	for what, again := range map[string]func(*certificate) error{
		"client": func(c *certificate) error {
			c.looked = time.Time{} // as if a second had passed
			return nil
		},
		"reload": (*certificate).reload,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, ca := t.TempDir(), certtest.New(t)
			certFile, keyFile, serial := ca.Write(dir, "first.example.com")
			c, err := loadCertificate(certFile, keyFile, quiet)
			if err != nil {
				t.Fatal(err)
			}
			check := func(why string, want int64, isValid bool) {
				t.Helper()
				err := again(c)
				if failed := err != nil; what == "reload" && failed == isValid {
					t.Errorf("%s: the reload returns %v", why, err)
				}
				got, err := c.get(nil)
				if err != nil || got.Leaf.SerialNumber.Int64() != want {
					t.Errorf("%s: uses certificate %v, want %d: %v", why, got.Leaf.SerialNumber, want, err)
				}
			}
			check("nothing is new", serial, true)
			first, _ := os.ReadFile(certFile)
			_, _, serial = ca.Write(dir, "second.example.com")
			second, _ := os.ReadFile(certFile)
			check("renewed", serial, true)
			for why, step := range map[string]func() error{
				"of another key": func() error { return os.WriteFile(certFile, first, 0o600) },
				"none":           func() error { return os.WriteFile(certFile, []byte("none"), 0o600) },
				"gone":           func() error { return os.Remove(certFile) },
			} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
				check(why, serial, false)
				if err := os.WriteFile(certFile, second, 0o600); err != nil {
					t.Fatal(err)
				}
				check("after "+why, serial, true)
			}
			_, _, serial = ca.Write(dir, "third.example.com")
			check("renewed again", serial, true)
		})
	}
}

// TestRefusesFiles tests that errors name the file.
func TestRefusesFiles(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	certFile, keyFile, _ := ca.Write(t.TempDir(), "a.example.com")
	_, otherKey, _ := ca.Write(t.TempDir(), "b.example.com")
	for what, c := range map[string]struct{ cert, key, want string }{
		"no certificate": {certFile + "x", keyFile, "cert.pemx: no such file"},
		"no key":         {certFile, keyFile + "x", "key.pemx: no such file"},
		"swapped":        {keyFile, certFile, "certificate"},
		"another's key":  {certFile, otherKey, "private key does not match"},
	} {
		if _, err := loadCertificate(c.cert, c.key, quiet); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestExpiry tests the metric: of files, of several hosts by ACME, and that servers without a certificate have none.
func TestExpiry(t *testing.T) {
	t.Parallel()
	certFile, keyFile, _ := certtest.New(t).Write(t.TempDir(), "a.example.com")
	files, err := loadCertificate(certFile, keyFile, quiet)
	if err != nil {
		t.Fatal(err)
	}
	issuing := &Server{}
	count := func(s *Server) int {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(s)
		n, err := testutil.GatherAndCount(registry, "proofline_certificate_expires_seconds")
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if count(nil) != 0 || count(issuing) != 0 || count(&Server{files: files}) != 1 {
		t.Error("not exactly the servers with a certificate have a metric")
	}
	at := time.Now().Add(30 * 24 * time.Hour).Truncate(time.Second)
	for host, ends := range map[string]time.Time{"one": at, "two": at.Add(time.Hour)} {
		leaf := &x509.Certificate{DNSNames: []string{host}, NotAfter: ends}
		get := func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &tls.Certificate{Leaf: leaf}, nil }
		if _, err := issuing.issued.remember(get)(&tls.ClientHelloInfo{ServerName: host}); err != nil {
			t.Fatal(err)
		}
	}
	if got := issuing.expires(); !got.Equal(at) {
		t.Errorf("the first certificate expires %v, want %v", got, at)
	}
}

// TestRedirect tests redirects to https at the same address.
func TestRedirect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		port                 int
		method, host, target string
		status               int
		location             string
	}{
		{443, "GET", "shop.example.com", "/a%2fb?c=d&e", 301, "https://shop.example.com/a%2fb?c=d&e"},
		{443, "GET", "shop.example.com:80", "/", 301, "https://shop.example.com/"},
		{8443, "HEAD", "[::1]:8080", "//evil.example.com/", 301, "https://[::1]:8443//evil.example.com/"},
		{443, "POST", "shop.example.com", "/", 308, "https://shop.example.com/"},
		{443, "GET", "", "/", 400, ""},
		{443, "GET", "shop.example.com@evil.example.com", "/", 400, ""},
		{443, "GET", "shop.example.com/evil", "/", 400, ""},
		{443, "OPTIONS", "shop.example.com", "*", 400, ""},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Host = c.host
		w := httptest.NewRecorder()
		redirect(&net.TCPAddr{Port: c.port}).ServeHTTP(w, r)
		if got := w.Header().Get("Location"); w.Code != c.status || got != c.location {
			t.Errorf("%s %s%s: %d to %q, want %d to %q", c.method, c.host, c.target, w.Code, got, c.status, c.location)
		}
	}
}

// FuzzHostname tests that a redirect goes to the request's host or nowhere.
func FuzzHostname(f *testing.F) {
	for _, text := range []string{"shop.example.com", "shop.example.com:80", "[::1]:8080", "a@b", "a/b", "a?b", "a#b",
		`a\b`, "a%2fb", "", ":80", "[::1", "a:b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, ok := hostname(text)
		if !ok {
			return
		}
		u, err := url.Parse("https://" + host + ":8443/path")
		if err != nil || u.Host != host+":8443" || u.User != nil || u.Path != "/path" || u.RawQuery != "" ||
			u.Fragment != "" {
			t.Errorf("%q redirects to %q: %+v, %v", text, host, u, err)
		}
	})
}
