package https

import (
	"crypto/tls"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/acme"
)

var expiry = prometheus.NewDesc("proofline_certificate_expires_seconds",
	"Expiry of the TLS certificate in use, in seconds since 1970; of several, the first.", nil, nil)

// Describe implements [prometheus.Collector].
func (*Server) Describe(to chan<- *prometheus.Desc) { to <- expiry }

// Collect implements [prometheus.Collector]. A nil Server, and one that has no certificate yet, has no metric.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	if at := s.expires(); !at.IsZero() {
		to <- prometheus.MustNewConstMetric(expiry, prometheus.GaugeValue, float64(at.Unix()))
	}
}

// expires returns when the first certificate expires; zero: there is none yet.
func (s *Server) expires() time.Time {
	switch {
	case s == nil:
		return time.Time{}
	case s.files != nil:
		return s.files.expires()
	}
	return s.issued.first()
}

// issued knows when the certificates by ACME expire.
type issued struct {
	mu sync.Mutex
	at map[string]time.Time // by host, since the host's latest client
}

// remember returns a function that gets certificates from get, and notes when they expire.
func (i *issued) remember(
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error),
) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := get(hello)
		if err != nil || c.Leaf == nil || slices.Contains(hello.SupportedProtos, acme.ALPNProto) {
			return c, err
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.at == nil {
			i.at = map[string]time.Time{}
		}
		i.at[c.Leaf.DNSNames[0]] = c.Leaf.NotAfter
		return c, nil
	}
}

func (i *issued) first() (at time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, next := range i.at {
		if at.IsZero() || next.Before(at) {
			at = next
		}
	}
	return at
}
