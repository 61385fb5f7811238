package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/proofline/proofline/cmd/proofline/internal/https"
	"github.com/proofline/proofline/internal/certtest"
	"github.com/proofline/proofline/internal/freeport"
)

// ask requests a URL, and returns the answer and the serial number of the server's certificate.
func ask(t *testing.T, c *http.Client, url string) (answer *http.Response, serial int64) {
	t.Helper()
	answer, serial, err := tryAsk(t, c, url)
	if err != nil {
		t.Fatal(err)
	}
	return answer, serial
}

func tryAsk(t *testing.T, c *http.Client, url string) (answer *http.Response, serial int64, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err = c.Do(r); err != nil {
		return nil, 0, err
	}
	_, _ = io.Copy(io.Discard, answer.Body) // so that the connection is used again
	_ = answer.Body.Close()
	if answer.TLS != nil {
		serial = answer.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	return answer, serial, nil
}

// tlsCommand is a command that speaks TLS itself: its flags but those about it, a path that it answers when it is
// ready, and the directory in which it keeps certificates by ACME.
type tlsCommand struct {
	args        []string
	ready, acme string
}

func tlsCommands(t *testing.T, dir string) map[string]tlsCommand {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(site.Close)
	rules := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(rules, []byte(`{"version":1,"rules":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	return map[string]tlsCommand{
		"serve": {[]string{"serve", "--data", data, "--addr", "127.0.0.1:0"}, "/readyz", filepath.Join(data, https.CacheDir)},
		"proxy": {[]string{"proxy", "--rules", rules, "--to", site.URL, "--listen", "127.0.0.1:0", "--key",
			filepath.Join(dir, "key")}, "/.proofline/readyz", filepath.Join(dir, https.CacheDir)},
	}
}

// TestTLS serves https from files, which change while a client is connected, and are read again at once on SIGHUP.
func TestTLS(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"serve", "proxy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ca := tempDir(t), certtest.New(t)
			c := tlsCommands(t, dir)[name]
			certFile, keyFile, first := ca.Write(dir, "localhost")
			p := launch(t, nil, append(c.args, "--tls-cert", certFile, "--tls-key", keyFile, "--redirect-http",
				"127.0.0.1:0", "--hsts", "24h")...)
			url := p.until(`listening on (https://\S+)`, startTime)
			plain := p.until(`redirecting to https on (http://\S+)`, startTime)
			addr := strings.TrimPrefix(url, "https://")
			early := ca.Client(addr)
			waitFor(t, "it is ready", func() bool {
				answer, _, err := tryAsk(t, early, url+c.ready)
				return err == nil && answer.StatusCode == http.StatusOK
			})
			answer, serial := ask(t, early, url+c.ready)
			if answer.ProtoMajor != 2 || serial != first ||
				fmt.Sprint(answer.Header.Values("Strict-Transport-Security")) != "[max-age=86400]" {
				t.Errorf("%s %s, certificate %d, %v", answer.Proto, answer.Status, serial, answer.Header)
			}
			_, _, second := ca.Write(dir, "localhost")
			waitFor(t, "a new connection gets the new certificate", func() bool {
				_, serial, err := tryAsk(t, ca.Client(addr), url+c.ready)
				return err == nil && serial == second
			})
			if answer, serial := ask(t, early, url+c.ready); serial != first || answer.StatusCode != http.StatusOK {
				t.Errorf("the open connection is dropped: certificate %d, %s", serial, answer.Status)
			}
			answer, _ = ask(t, ca.Client(strings.TrimPrefix(plain, "http://")), "http://"+addr+"/r/sale?lane=a")
			to := answer.Header.Get("Location")
			if to != url+"/r/sale?lane=a" || answer.StatusCode != http.StatusMovedPermanently {
				t.Errorf("plain HTTP: %s to %s", answer.Status, to)
			}
			old := &tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11,
				InsecureSkipVerify: true}} //nolint:gosec // a test
			if c, err := old.DialContext(t.Context(), "tcp", addr); err == nil {
				_ = c.Close()
				t.Error("a client with TLS 1.1 is served")
			}
			p.stop()
		})
	}
}

// TestACME gets a certificate from an authority by ACME, and keeps it.
func TestACME(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"serve", "proxy"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, ca := tempDir(t), certtest.New(t)
			plain := freeport.Addr(t)
			directory := serveACME(t, ca, plain)
			c := tlsCommands(t, dir)[name]
			args := append(c.args, "--acme-host", "queue.example.com", "--acme-email", "ops@example.com",
				"--acme-directory", directory.URL, "--redirect-http", plain)
			var serials []int64
			for range 2 { // the second start has the certificate
				p := launch(t, nil, args...)
				addr := strings.TrimPrefix(p.until(`listening on (https://\S+)`, startTime), "https://")
				answer, serial := ask(t, ca.Client(addr), "https://queue.example.com"+c.ready)
				if answer.ProtoMajor != 2 {
					t.Errorf("%s %s", answer.Proto, answer.Status)
				}
				serials = append(serials, serial)
				if _, _, err := tryAsk(t, ca.Client(addr), "https://other.example.com"+c.ready); err == nil {
					t.Error("a certificate for another host is given")
				}
				_, port, _ := net.SplitHostPort(addr)
				public, err := os.ReadFile(filepath.Join(dir, "data", "address"))
				if name == "serve" && (err != nil || string(public) != "https://queue.example.com:"+port+"\n") {
					t.Errorf("the address is %q, %v", public, err)
				}
				p.stop()
			}
			directory.mu.Lock()
			defer directory.mu.Unlock()
			if serials[0] != serials[1] || directory.orders != 1 {
				t.Errorf("certificates %v in %d orders", serials, directory.orders)
			}
			if kept, err := os.ReadDir(c.acme); err != nil || len(kept) == 0 {
				t.Error(kept, err)
			}
		})
	}
}

// acmeServer is an authority that speaks ACME (RFC 8555) with one client. It does not check signatures of requests, but
// whether the host answers its challenge.
type acmeServer struct {
	*httptest.Server

	ca    *certtest.Authority
	plain string // where hosts answer challenges

	mu        sync.Mutex // guards the fields below
	orders    int
	isValid   bool
	chain     []byte
	host      string
	challenge string
}

func serveACME(t *testing.T, ca *certtest.Authority, plain string) *acmeServer {
	t.Helper()
	a := &acmeServer{ca: ca, plain: plain, challenge: "token-of-the-challenge"}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		w.Header().Set("Replay-Nonce", rand.Text())
		if err := a.answer(w, r); err != nil {
			t.Errorf("%s: %v", r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *acmeServer) answer(w http.ResponseWriter, r *http.Request) error {
	var signed struct{ Payload string }
	var sent struct {
		Identifiers []struct{ Value string }
		CSR         string
		Contact     []string
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&signed); err != nil {
			return err
		}
		text, err := base64.RawURLEncoding.DecodeString(signed.Payload)
		if err != nil || len(text) > 0 && json.Unmarshal(text, &sent) != nil {
			return fmt.Errorf("payload %q", text)
		}
	}
	send := func(status int, v any) error {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		return json.NewEncoder(w).Encode(v)
	}
	challenge := func() map[string]any {
		return map[string]any{"type": "http-01", "url": a.URL + "/challenge", "token": a.challenge, "status": a.status()}
	}
	order := func() map[string]any {
		v := map[string]any{"status": a.orderStatus(), "authorizations": []string{a.URL + "/authz"},
			"finalize": a.URL + "/finalize", "identifiers": []map[string]string{{"type": "dns", "value": a.host}}}
		if a.chain != nil {
			v["certificate"] = a.URL + "/cert"
		}
		w.Header().Set("Location", a.URL+"/order")
		return v
	}
	switch r.URL.Path {
	case "/":
		return send(http.StatusOK, map[string]any{"newNonce": a.URL + "/nonce", "newAccount": a.URL + "/account",
			"newOrder": a.URL + "/new-order", "revokeCert": a.URL + "/revoke", "keyChange": a.URL + "/key"})
	case "/nonce":
		return nil
	case "/account":
		if fmt.Sprint(sent.Contact) != "[mailto:ops@example.com]" {
			return fmt.Errorf("contact %v", sent.Contact)
		}
		w.Header().Set("Location", a.URL+"/account/1")
		return send(http.StatusCreated, map[string]any{"status": "valid"})
	case "/new-order":
		a.orders++
		a.host = sent.Identifiers[0].Value
		return send(http.StatusCreated, order())
	case "/order":
		return send(http.StatusOK, order())
	case "/authz":
		return send(http.StatusOK, map[string]any{"status": a.status(), "challenges": []any{challenge()},
			"identifier": map[string]string{"type": "dns", "value": a.host}})
	case "/challenge":
		if err := a.verify(r.Context()); err != nil {
			return err
		}
		return send(http.StatusOK, challenge())
	case "/finalize":
		der, err := base64.RawURLEncoding.DecodeString(sent.CSR)
		if err != nil {
			return err
		}
		request, err := x509.ParseCertificateRequest(der)
		if err != nil {
			return err
		}
		a.chain, _ = a.ca.Sign(request.PublicKey, a.host)
		return send(http.StatusOK, order())
	case "/cert":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, err := w.Write(a.chain)
		return err
	}
	return fmt.Errorf("unknown path")
}

func (a *acmeServer) status() string {
	if a.isValid {
		return "valid"
	}
	return "pending"
}

func (a *acmeServer) orderStatus() string {
	switch {
	case a.chain != nil:
		return "valid"
	case a.isValid:
		return "ready"
	}
	return "pending"
}

// verify asks the host for the answer to the challenge.
func (a *acmeServer) verify(ctx context.Context) error {
	url := "http://" + a.plain + "/.well-known/acme-challenge/" + a.challenge
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	r.Host = a.host
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(text), a.challenge+".") {
		return fmt.Errorf("the host answers %s %q, %w", answer.Status, text, err)
	}
	a.isValid = true
	return nil
}
