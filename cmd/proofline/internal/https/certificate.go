package https

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateInterval is the time between checks of the files, during handshakes.
const certificateInterval = time.Second

// certificate is a TLS certificate chain and its key, in two files. Changed files
// are read again. If they are invalid, that is logged and the current certificate
// stays in use.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards the fields below
	current *tls.Certificate
	looked  time.Time
	seen    [2]fileStamp // stamps of the files when they were last read
}

// fileStamp identifies a version of a file.
type fileStamp struct {
	changed time.Time
	size    int64
}

// loadCertificate reads a certificate from PEM files.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, looked: time.Now()}
	c.seen = c.stamps()
	var err error
	if c.current, err = c.load(); err != nil {
		return nil, err
	}
	if now := time.Now(); now.After(c.current.Leaf.NotAfter) || now.Before(c.current.Leaf.NotBefore) {
		log.Warn("certificate is not valid now", "from", c.current.Leaf.NotBefore, "until", c.current.Leaf.NotAfter)
	}
	return c, nil
}

func (c *certificate) load() (*tls.Certificate, error) {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return nil, fmt.Errorf("read key of certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, nil
}

// stamps returns the stamps of both files, zero for a missing one.
func (c *certificate) stamps() (list [2]fileStamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			list[i] = fileStamp{info.ModTime(), info.Size()}
		}
	}
	return list
}

// get implements GetCertificate of [tls.Config].
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= certificateInterval {
		c.looked = now
		c.look()
	}
	return c.current, nil
}

// look reads changed files. They are written one after the other, so for a moment they may not match.
func (c *certificate) look() {
	if c.stamps() == c.seen {
		return
	}
	if err := c.read(); err != nil {
		c.log.Error("cannot load the new certificate: keeping the current one", "err", err)
	}
}

// reload reads the files now. If they are invalid, the current certificate stays in use.
func (c *certificate) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

// read reads the files, and uses what they contain.
func (c *certificate) read() error {
	c.seen = c.stamps()
	next, err := c.load()
	if err != nil {
		return err
	}
	isNew := !bytes.Equal(next.Leaf.Raw, c.current.Leaf.Raw)
	if c.current = next; isNew {
		c.log.Info("new certificate", "until", next.Leaf.NotAfter)
	}
	return nil
}

// expires returns when the certificate in use expires.
func (c *certificate) expires() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Leaf.NotAfter
}
