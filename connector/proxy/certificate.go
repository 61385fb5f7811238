package proxy

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateAgain is how often files are looked at, while there are handshakes.
const certificateAgain = time.Second

// Certificate is one of TLS in two files, with its chain. When they change,
// what is new counts from the next second on; files that are wrong are logged,
// and the certificate before stays.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex // guards what follows
	current *tls.Certificate
	looked  time.Time
	seen    [2]stamp // of the files when they were read
}

// stamp tells whether a file has changed.
type stamp struct {
	changed time.Time
	size    int64
}

// LoadCertificate reads PEM files.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, looked: time.Now()}
	c.seen = c.stamps()
	var err error
	if c.current, err = c.load(); err != nil {
		return nil, err
	}
	if now := time.Now(); now.After(c.current.Leaf.NotAfter) || now.Before(c.current.Leaf.NotBefore) {
		log.Warn("the certificate is not good now", "from", c.current.Leaf.NotBefore, "until", c.current.Leaf.NotAfter)
	}
	return c, nil
}

// Expires returns when the certificate in use expires.
func (c *Certificate) Expires() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Leaf.NotAfter
}

func (c *Certificate) load() (*tls.Certificate, error) {
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

// stamps returns those of both files, zero for one that is not there.
func (c *Certificate) stamps() (list [2]stamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			list[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return list
}

// get is for [tls.Config].
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked) >= certificateAgain {
		c.looked = now
		c.renew()
	}
	return c.current, nil
}

// renew reads files that have changed. The two are written one after the
// other, so that they may not fit for a moment.
func (c *Certificate) renew() {
	seen := c.stamps()
	if seen == c.seen {
		return
	}
	c.seen = seen
	next, err := c.load()
	if err != nil {
		c.log.Error("the new certificate is not used: the one before stays", "err", err)
		return
	}
	c.current = next
	c.log.Info("new certificate", "until", next.Leaf.NotAfter)
}
