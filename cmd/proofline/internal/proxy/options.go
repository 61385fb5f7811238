package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
)

// read turns the flags into options, and reads the files that they name.
func (f *settings) read(t *cli.Terminal) error {
	log, err := t.Logger(f.logFormat, f.logLevel)
	if err != nil {
		return cli.Usage(err, "")
	}
	f.connector.Log, f.proxy.Log = log, log
	if f.accessLog {
		f.proxy.AccessLog = log
	}
	l := &f.proxy.Limits
	for _, wait := range []time.Duration{l.HeaderTime, l.Idle, l.Stall, l.Answer, f.proxy.Grace} {
		if wait <= 0 {
			return cli.Usage(errors.New("a timeout must be longer than 0"),
				"give times such as 30s or 5m, or leave the flag out")
		}
	}
	l.Body, l.HeaderSize = int64(f.maxBody), int(f.maxHeader)
	for _, step := range []func() error{
		func() error { return f.readRules(t) }, f.readSite, f.readProxies, f.readPage,
		func() error { return f.readKey(t) }, func() error { return f.readState(t) },
		func() error { return f.readTLS(t) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// readRules reads the flags about the source of the rules and the server to report
// to.
func (f *settings) readRules(t *cli.Terminal) error {
	isURL := f.site != "" || strings.Contains(f.rules, "://")
	switch {
	case (f.rules == "") == (f.site == ""):
		return cli.Usage(errors.New("exactly one of --rules and --site is needed"),
			"connector/README.md begins with an example of a rules file")
	case f.noKeep && f.keep != "":
		return cli.Usage(errors.New("--keep and --no-keep contradict each other"), "leave one of them out")
	case !isURL && f.keep != "":
		return cli.Usage(errors.New("--keep is for rules of a URL"), "leave it out: a file of --rules needs no copy")
	case f.site == "" && f.siteKey != "":
		return cli.Usage(errors.New("--site-key needs --site"), "leave it out, or give --site instead of --rules")
	case f.site != "" && f.siteKey == "":
		return cli.Usage(errors.New("--site needs --site-key"), "get it with: proofline site key")
	}
	f.connector.Source = &connector.Source{File: f.rules}
	if isURL {
		f.connector.Source = &connector.Source{URL: f.rules + f.site, SiteKey: f.siteKey, Keep: f.keepFile(t)}
	}
	f.connector.Server = f.reportTo
	return f.readToken(t)
}

// keepFile returns the name of the file for the copy of a URL's rules, one per URL;
// empty: no copy.
func (f *settings) keepFile(t *cli.Terminal) string {
	if f.keep != "" || f.noKeep {
		return f.keep
	}
	sum := sha256.Sum256([]byte(f.rules + f.site))
	return filepath.Join(f.stateDir(t), "connector-rules-"+hex.EncodeToString(sum[:8]))
}

const tokenHint = "make one with: proofline token create NAME --scope connect; " +
	"give it with --token-file FILE or in PROOFLINE_TOKEN"

// readToken reads the token for the server to report to, if there is one.
func (f *settings) readToken(t *cli.Terminal) (err error) {
	if f.site == "" && f.reportTo == "" {
		if f.tokenFile != "" {
			return cli.Usage(errors.New("--token-file needs --site or --report-to"),
				"leave it out, or name the server with --report-to")
		}
		return nil
	}
	if f.tokenFile == "" {
		if f.connector.Token = t.Env("PROOFLINE_TOKEN"); f.connector.Token == "" {
			return cli.Usage(errors.New("the server needs a token"), tokenHint)
		}
		return nil
	}
	f.connector.TokenFile = f.tokenFile // read again on changes, so that a new token needs no restart
	_, err = secret.Read(f.tokenFile)
	if errors.Is(err, secret.ErrExposed) {
		return cli.Failed(err, "restrict it to its owner: chmod 600 "+f.tokenFile)
	}
	if err != nil {
		return cli.Failed(err, tokenHint)
	}
	return nil
}

// explainConnector adds a hint to an error of connector.New.
func (f *settings) explainConnector(err error) error {
	switch {
	case errors.Is(err, connector.ErrReports):
		return cli.Failed(err, "name the server with --report-to, or store the rules there and use --site; "+tokenHint)
	case errors.Is(err, connector.ErrServer):
		return cli.Usage(err, "give an address such as https://queue.example.com with --report-to")
	case errors.Is(err, connector.ErrSiteKey), errors.Is(err, connector.ErrUnsigned), errors.Is(err,
		connector.ErrNeedsKey):
		return cli.Failed(err, "get the key of the organization's sites with: proofline site key")
	case errors.Is(err, connector.ErrToken):
		return cli.Failed(err, tokenHint)
	case errors.Is(err, connector.ErrKey):
		return cli.Failed(err, "openssl rand -hex 32 prints one for the file of --key; a missing file is created")
	case errors.Is(err, connector.ErrPage):
		return cli.Failed(err, "give it with --page FILE")
	case errors.Is(err, connector.ErrOlder):
		return cli.Failed(err, "if the server was restored from a backup, "+
			"delete the file of --keep or change the rules there")
	case errors.As(err, new(*rules.InvalidError)):
		return cli.Failed(err, "check the rules with: proofline connector check")
	case f.site != "":
		return cli.Failed(err, "get the address with: proofline site show")
	}
	return cli.Failed(err, "name a readable file or URL with --rules")
}

// readSite parses the site's addresses.
func (f *settings) readSite() error {
	if f.authOnly != (len(f.to) == 0) {
		return cli.Usage(errors.New("exactly one of --to, with a URL, and --auth-only is needed"),
			"give the site's own address, such as --to http://127.0.0.1:3000")
	}
	for _, text := range f.to {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			return cli.Usage(fmt.Errorf("--to: %.100q is not the address of a site", text),
				"give one such as http://127.0.0.1:3000")
		}
		if len(f.proxy.To) > 0 && u.Path != f.proxy.To[0].Path {
			return cli.Usage(errors.New("--to: the addresses have different paths"),
				"give addresses with the same path")
		}
		if slices.ContainsFunc(f.proxy.To, func(other *url.URL) bool { return other.Host == u.Host }) {
			return cli.Usage(fmt.Errorf("--to: %s is given twice", u.Host), "")
		}
		f.proxy.To = append(f.proxy.To, u)
	}
	if check := f.proxy.Check; check != "" {
		if u, err := url.ParseRequestURI(check); f.authOnly || err != nil || u.Host != "" || check[0] != '/' {
			return cli.Usage(fmt.Errorf("--check: %.100q is not a path of the site", check),
				"give one such as /healthz, with --to")
		}
	}
	return nil
}

func (f *settings) readProxies() error {
	if f.authOnly && len(f.proxies) == 0 {
		f.proxies = []string{"127.0.0.0/8", "::1/128"}
	}
	for _, text := range f.proxies {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return cli.Usage(fmt.Errorf("--trusted-proxies: %w", err), "give networks such as 10.0.0.0/8,192.0.2.7/32")
		}
		f.connector.TrustedProxies = append(f.connector.TrustedProxies, p)
	}
	f.proxy.TrustedProxies = f.connector.TrustedProxies
	return nil
}

func (f *settings) readPage() (err error) {
	if f.page == "" {
		return nil
	}
	if f.connector.Page, err = os.ReadFile(f.page); err != nil {
		return cli.Failed(err, "name a readable file with --page")
	}
	return nil
}

// reloading returns what SIGHUP reads again. The page comes before rules that may need it.
func (f *settings) reloading(c *connector.Connector) []cli.Reloading {
	all := f.speaks.Reloading()
	if f.page != "" {
		all = append(all, cli.Reloading{Name: "page", Reload: func(context.Context) error {
			text, err := os.ReadFile(f.page)
			if err != nil {
				return err
			}
			return c.SetPage(text)
		}})
	}
	return append(all, cli.Reloading{Name: "rules", Reload: c.Reload})
}

func (f *settings) readKey(t *cli.Terminal) error {
	if f.key == "" {
		f.key = filepath.Join(t.DataDir(), connectorKeyFile)
		//nolint:gosec // under root another user runs the private PostgreSQL inside it
		if err := os.MkdirAll(t.DataDir(), 0o711); err != nil {
			return cli.Failed(err, "choose another file with --key")
		}
	}
	key, err := secret.Ensure(f.key, func() (string, error) { return secret.NewToken(), nil })
	if errors.Is(err, secret.ErrExposed) {
		return cli.Failed(err, "restrict it to its owner: chmod 600 "+f.key)
	}
	if err != nil {
		return cli.Failed(err, "choose another file with --key")
	}
	f.connector.Key = []byte(key)
	return nil
}

// readState sets the file that keeps fail-open intervals and gates over a restart.
// The connector warns if it cannot write the file.
func (f *settings) readState(t *cli.Terminal) error {
	reports := f.site != "" || f.reportTo != ""
	switch {
	case f.state != "" && !reports:
		return cli.Usage(errors.New("--state needs --site or --report-to"),
			"leave it out, or name the server with --report-to")
	case f.state == "" && reports:
		f.state = f.defaultState(f.stateDir(t))
	}
	f.connector.State = f.state
	return nil
}

// defaultState returns the name of a state file for this proxy alone. It is empty if
// the address does not distinguish it from others that share the directory.
func (f *settings) defaultState(dir string) string {
	host, port, err := net.SplitHostPort(f.listen)
	if err != nil || port == "0" {
		return ""
	}
	name := strings.Trim("connector-state-"+strings.ReplaceAll(host, ":", "_")+"-"+port, "-")
	return filepath.Join(dir, strings.ReplaceAll(name, "--", "-"))
}

// stateDir returns the directory for files that no flag names: that of the key.
func (f *settings) stateDir(t *cli.Terminal) string {
	if f.key != "" {
		return filepath.Dir(f.key)
	}
	return t.DataDir()
}

// readTLS reads the flags about TLS. What an authority signs is kept next to the key.
func (f *settings) readTLS(t *cli.Terminal) (err error) {
	if f.speaks, err = f.https.Open(f.stateDir(t), f.proxy.Log); err == nil && f.speaks != nil {
		f.proxy.HSTS = f.speaks.HSTS
	}
	return err
}

// byteSize is a number of bytes, written in flags as 65536, 64k, 20m or 1g.
type byteSize int64

const maxByteSize = 1 << 50

// Set implements [pflag.Value].
func (b *byteSize) Set(text string) error {
	number, shift := text, 0
	for i, unit := range []string{"k", "m", "g"} {
		if rest, ok := strings.CutSuffix(strings.ToLower(text), unit); ok {
			number, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || n > maxByteSize>>shift {
		return errors.New("give a number of bytes, such as 65536, 64k, 20m or 1g")
	}
	*b = byteSize(n << shift)
	return nil
}

// String implements [pflag.Value].
func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	n, unit := int64(*b), ""
	for _, next := range []string{"k", "m", "g"} {
		if n%1024 != 0 {
			break
		}
		n, unit = n/1024, next
	}
	return strconv.FormatInt(n, 10) + unit
}

// Type implements [pflag.Value].
func (*byteSize) Type() string { return "size" }
