package site

import (
	"github.com/proofline/proofline/console/site/pgsite"
)

// Options is what [New] needs.
type Options struct {
	Store *pgsite.Store
}

// Sites are those of all organizations of a server. Safe for concurrent use.
type Sites struct{ Options }

// New returns the sites of a server.
func New(o Options) *Sites { return &Sites{o} }
