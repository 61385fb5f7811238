package issuer

import (
	"net/http"
	"sync"

	web "github.com/proofline/proofline/web/issuer"
)

// pages serves the site of the latest configuration.
type pages struct {
	mu      sync.Mutex // guards the field below
	current *site      // nil: none yet

	closing sync.WaitGroup // former sites that still answer
}

// site is a site with the requests that it answers.
type site struct {
	*web.Site
	open sync.WaitGroup
}

// ServeHTTP implements [http.Handler].
func (p *pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	s := p.current
	s.open.Add(1)
	p.mu.Unlock()
	defer s.open.Done()
	s.Site.ServeHTTP(w, r)
}

// use has a site answer from now on. The former one is closed when it has answered its requests.
func (p *pages) use(next *web.Site) {
	p.mu.Lock()
	former := p.current
	p.current = &site{Site: next}
	p.mu.Unlock()
	if former == nil {
		return
	}
	p.closing.Go(func() {
		former.open.Wait()
		former.Close()
	})
}

// close closes all sites, after the last request.
func (p *pages) close() {
	p.closing.Wait()
	p.current.Close()
}
