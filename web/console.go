package web

import (
	"io/fs"
	"net/http"

	"github.com/proofline/proofline/web/console"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/files"
)

// openConsole returns the organizers' pages.
func openConsole(o Options, hosts *customHosts, protection *http.CrossOriginProtection, p problems,
	closing <-chan struct{}) *console.Console {
	manifest, err := fs.ReadFile(o.Assets, files.Manifest)
	if err != nil {
		manifest = nil // pages without scripts and styles; files.Load has logged the error
	}
	c, err := console.New(console.Options{
		Accounts: o.Accounts, Describe: p.explain, Control: o.Control,
		Activity: o.Activity, Live: o.Live, Webhooks: o.Webhooks,
		Sites: o.Sites, Closing: closing, CrossOrigin: protection, Manifest: manifest, Version: o.Version,
		PublicURL: o.publicURL(), Foreign: hosts.isForeign, Log: o.Log,
	})
	if err != nil {
		panic(err) // templates are part of the program
	}
	return c
}

// explain describes an error for the organizers' pages.
func (p problems) explain(err error) shell.Problem {
	found := p.describe(err)
	if found.Title == "" {
		found.Title = http.StatusText(found.Status)
	}
	return shell.Problem{Status: found.Status, Title: found.Title, Detail: found.Detail, Retry: found.retry}
}
