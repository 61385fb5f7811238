// Package certtest signs certificates for tests, and connects clients that trust them.
package certtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Authority signs certificates. It is safe for concurrent use.
type Authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu     sync.Mutex // guards the field below
	serial int64      // of the latest certificate
}

// New returns an authority with a key of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, serial: 1, key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.root, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Sign returns a certificate for a key and names, and for 127.0.0.1, in PEM with its chain, and its serial number.
func (a *Authority) Sign(public any, names ...string) (chain []byte, serial int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.serial++
	leaf := &x509.Certificate{SerialNumber: big.NewInt(a.serial), DNSNames: names,
		IPAddresses: []net.IP{{127, 0, 0, 1}},
		NotBefore:   time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.root, public, a.key)
	if err != nil {
		a.t.Error(err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Raw})...), a.serial
}

// Write writes a new certificate with its chain, and its key, into the files cert.pem and key.pem of a directory.
func (a *Authority) Write(dir string, names ...string) (certFile, keyFile string, serial int64) {
	a.t.Helper()
	key := newKey(a.t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	chain, serial := a.Sign(key.Public(), names...)
	for name, text := range map[string][]byte{
		certFile: chain, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certFile, keyFile, serial
}

// Pair returns a new certificate for servers.
func (a *Authority) Pair(names ...string) tls.Certificate {
	a.t.Helper()
	certFile, keyFile, _ := a.Write(a.t.TempDir(), names...)
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// Client returns a client that trusts the authority, connects to an address for every host, and follows no redirects.
func (a *Authority) Client(addr string) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.root)
	return &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
