package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/brand"
	"github.com/proofline/proofline/web/client"
	web "github.com/proofline/proofline/web/issuer"
	"github.com/proofline/proofline/web/limit"
)

const (
	// IssuerDir is the directory of the server's own issuer, below the data directory.
	IssuerDir = "own-issuer"
	// IssuerPath is the path of its pages.
	IssuerPath = "/issuer"
	// mailPatience is how long a server that stops waits for the mail server to take visitors' codes. Most of
	// [stopTimeout] is for rooms and the database.
	mailPatience = 2 * time.Second
)

// proofs are the ways in which the own issuer confirms visitors, by the key in the configuration of a new room. Each
// has a key that signs for nothing else, so the key in a room's policy decides what visitors show.
var proofs = map[string]web.Proof{
	setting.OwnKey:        web.ByList,
	setting.OwnPuzzleKey:  web.ByPuzzle,
	setting.OwnCaptchaKey: web.ByCaptcha,
	setting.OwnMailKey:    web.ByMail,
	setting.OwnOIDCKey:    web.ByOIDC,
}

// purpose is that of the key which signs for a proof.
func purpose(p web.Proof) string {
	if p == web.ByList {
		return ""
	}
	return string(p)
}

// ownIssuer vouches for visitors of this server's rooms with a secret, lists and records of its own. It knows of a
// room what is public. Its offer for a method of a room has the name SLUG.METHOD, and so has its list.
type ownIssuer struct {
	dir    issuerdir.Dir
	store  *issuer.Store
	issuer *issuer.Issuer
	url    *url.URL
	server *Server // of which it uses the public part of rooms, and the names of organizers

	mu    sync.Mutex
	lists map[string]*readList // by name

	owns sync.Map // by room and method, which of [setting.OwnKeys] a public key stands for
}

// methodOf is a method of a room.
type methodOf struct {
	slug string
	credential.Method
}

// readList is a list as it was read from its file.
type readList struct {
	written time.Time
	size    int64
	list    *issuer.List
}

// openIssuer opens the server's own issuer, unless it is turned off.
func (s *Server) openIssuer(context.Context) error {
	if !s.cfg.OwnIssuer {
		return nil
	}
	dir := issuerdir.Dir(filepath.Join(s.cfg.Data, IssuerDir))
	if _, err := dir.Issuer(nil); err != nil { // creates the directory
		return err
	}
	store, err := issuer.OpenStore(string(dir))
	if errors.Is(err, issuer.ErrLocked) {
		return cli.Failed(err, "another server or issuer runs with this directory: stop it, or start with --issuer off")
	}
	if err != nil {
		return err
	}
	s.atStop(func(context.Context) error { return store.Close() })
	own := &ownIssuer{dir: dir, store: store, server: s, lists: map[string]*readList{}}
	if own.issuer, err = dir.Issuer(store); err != nil {
		return err
	}
	if own.url, err = url.Parse(s.cfg.PublicURL); err != nil {
		return fmt.Errorf("%w: %w", ErrPublicURL, err)
	}
	own.url = &url.URL{Scheme: own.url.Scheme, Host: own.url.Host, Path: IssuerPath}
	s.issuer = own
	return nil
}

// openIssuerSite makes the pages of the own issuer.
func (s *Server) openIssuerSite(context.Context) (err error) {
	if s.issuer == nil {
		return nil
	}
	log := s.cfg.Log.With("part", "issuer")
	c := web.Config{
		Issuer: s.issuer.issuer, URL: s.issuer.url, Name: s.issuer.url.Host, Find: s.issuer.find,
		Clients: client.New(s.cfg.TrustedProxies, log), Now: time.Now, Log: log,
		Captcha: s.cfg.Captcha, Provider: s.cfg.IssuerOIDC,
		Limits: limit.New(limit.Options{Passes: web.DefaultAttempts, Pages: web.DefaultPages,
			Joins: web.DefaultSolved, Exempt: s.cfg.Limits.Exempt, Log: log}),
	}
	if s.cfg.Mail != nil {
		c.Mailer = s.cfg.Mail
	}
	if s.issuerSite, err = web.New(c); err != nil {
		return err
	}
	s.atStop(func(context.Context) error {
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			s.issuerSite.Close()
		}()
		select {
		case <-sent:
		case <-time.After(mailPatience):
			log.Warn("codes for visitors were not sent: the mail server did not take them in time")
		}
		return nil
	})
	return nil
}

// withoutCookies hides cookies from a handler but one of a name: those of rooms hold visitors' secrets.
func withoutCookies(next http.Handler, but string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept, err := r.Cookie(but)
		r.Header.Del("Cookie")
		if err == nil {
			r.AddCookie(kept)
		}
		next.ServeHTTP(w, r)
	})
}

func offerName(slug, method string) string { return slug + "." + method }

// blindName is the name of the RSA key for a method whose key in the room's configuration was own.
func blindName(slug, method, own string) string {
	if name := purpose(proofs[own]); name != "" {
		return offerName(slug, method) + "." + name
	}
	return offerName(slug, method)
}

// Key implements [room.Issuer].
func (o *ownIssuer) Key(slug string, m credential.Method) (string, error) {
	offer := &issuer.Offer{Method: m.Name, Purpose: purpose(proofs[m.Key])}
	if m.Kind == credential.Blind {
		key, err := o.dir.BlindKey(blindName(slug, m.Name, m.Key))
		if err != nil {
			return "", err
		}
		offer.Key = key
	}
	return o.issuer.Method(offer).Key, nil
}

// Page implements [room.Issuer].
func (o *ownIssuer) Page(slug, method string) string {
	return o.url.JoinPath(offerName(slug, method)).String()
}

// needs says what visitors need for a proof, besides those of a list.
var needs = map[web.Proof]setting.Proof{
	web.ByMail: setting.ProofMail, web.ByOIDC: setting.ProofAccount, web.ByPuzzle: setting.ProofPuzzle,
	web.ByCaptcha: setting.ProofCaptcha,
}

// Proof implements [room.Issuer].
func (o *ownIssuer) Proof(slug string, m credential.Method) (p setting.Proof, at string) {
	own := o.OwnKey(slug, m)
	if own == setting.OwnOIDCKey && o.server.cfg.IssuerOIDC != nil {
		at = o.server.cfg.IssuerOIDC.Name
	}
	if own != setting.OwnKey {
		return needs[proofs[own]], at
	}
	if list, err := o.list(offerName(slug, m.Name)); err == nil && !list.IsCodes {
		return setting.ProofMember, ""
	}
	return setting.ProofCode, ""
}

// Lacks implements [room.Issuer].
func (o *ownIssuer) Lacks(key string) string {
	switch {
	case key == setting.OwnCaptchaKey && o.server.cfg.Captcha == nil:
		return "this server has no CAPTCHA service: start it with --captcha"
	case key == setting.OwnMailKey && o.server.cfg.Mail == nil:
		return "this server sends no mail: start it with --smtp"
	case key == setting.OwnOIDCKey && o.server.cfg.IssuerOIDC == nil:
		return "this server has no OpenID Connect provider for visitors: start it with --issuer-oidc"
	}
	return ""
}

// OwnKey implements [control.Issuer].
func (o *ownIssuer) OwnKey(slug string, m credential.Method) string {
	if m.Kind == credential.Work {
		return ""
	}
	of := methodOf{slug, credential.Method{Name: m.Name, Kind: m.Kind, Key: m.Key}}
	if own, ok := o.owns.Load(of); ok {
		return own.(string) //nolint:forcetypeassert // nothing else is stored
	}
	own := o.ownKey(slug, m)
	if own != "" {
		o.owns.Store(of, own)
	}
	return own
}

// ownKey returns which of [setting.OwnKeys] the key of a room's method stands for.
func (o *ownIssuer) ownKey(slug string, m credential.Method) string {
	for _, own := range setting.OwnKeys {
		isBlind := m.Kind == credential.Blind
		if isBlind && (setting.IsSignedOnly(own) || !o.dir.HasBlindKey(blindName(slug, m.Name, own))) {
			continue // and make no key
		}
		of := m
		of.Key = own
		if key, err := o.Key(slug, of); err == nil && key == m.Key {
			return own
		}
	}
	return ""
}

// AddCodes implements [control.Issuer].
func (o *ownIssuer) AddCodes(slug, method string, count int) (codes []string, total int, err error) {
	codes, total, err = o.dir.AddCodes(o.issuer, offerName(slug, method), count)
	if errors.Is(err, issuerdir.ErrMembers) {
		err = control.ErrMembers
	}
	return codes, total, err
}

// codesOf returns the offer for a method of a room, with its codes.
func (o *ownIssuer) codesOf(ctx context.Context, slug, method string) (*web.Offer, error) {
	found := o.find(ctx, offerName(slug, method))
	switch {
	case found == nil:
		return nil, control.ErrNotOwn
	case !found.List.IsCodes:
		return nil, control.ErrMembers
	}
	return found, nil
}

// Codes implements [control.Issuer].
func (o *ownIssuer) Codes(ctx context.Context, slug, method string) (list []control.CodeBatch, err error) {
	offer, err := o.codesOf(ctx, slug, method)
	if err != nil {
		return nil, err
	}
	batches, err := o.issuer.Batches(offer.Offer, offer.List)
	for _, b := range batches {
		list = append(list, control.CodeBatch{
			Made: time.UnixMilli(b.Millis), Unused: b.Unused, Used: b.Used, Void: b.Void,
		})
	}
	return list, err
}

// VoidCodes implements [control.Issuer].
func (o *ownIssuer) VoidCodes(ctx context.Context, slug, method string, which control.CodesToVoid,
	check bool) (v control.VoidedCodes, err error) {
	offer, err := o.codesOf(ctx, slug, method)
	if err != nil {
		return v, err
	}
	accounts, unknown := offer.List.Accounts(which.Codes)
	if which.Batch != 0 {
		if accounts = offer.List.Batch(which.Batch); len(accounts) == 0 {
			return v, control.ErrNoBatch
		}
	}
	t, err := o.issuer.Void(offer.Offer, accounts, check)
	return control.VoidedCodes{Voided: t.Unused, Used: t.Used, Before: t.Void, Unknown: unknown}, err
}

// SetMembers implements [control.Issuer].
func (o *ownIssuer) SetMembers(slug, method string, columns []string, rows [][]string,
	check bool) (control.Members, error) {
	m, err := o.dir.SetMembers(o.issuer, offerName(slug, method), columns, rows, check)
	switch {
	case errors.Is(err, issuerdir.ErrCodes):
		err = control.ErrCodes
	case errors.Is(err, issuer.ErrList):
		err = invalid.Field("file", "must have one to four columns with different names of at most 64 characters")
	}
	return control.Members(m), err
}

// files returns the personal data of the issuer; none for nil.
func (o *ownIssuer) files() []retention.Files {
	if o == nil {
		return nil
	}
	return []retention.Files{issuerFiles{o.dir, o.store, pgroom.NewStore(o.server.pool)}}
}

// isForgotten reports whether a room ended so long ago that the records of what was issued are deleted, or about to be.
func (o *ownIssuer) isForgotten(ctx context.Context, r *room.Room) bool {
	if !r.Snapshot().Ended {
		return false
	}
	stored, err := pgroom.NewStore(o.server.pool).Get(ctx, r.Slug)
	return err != nil || stored.Ended != nil && stored.Ended.Before(o.server.cfg.KeepPersonal.Since(time.Now()))
}

// find returns the offer for a method of a room. Rooms that have ended keep theirs until the records are deleted: what
// it issues is good for nothing.
func (o *ownIssuer) find(ctx context.Context, name string) *web.Offer {
	slug, method, _ := strings.Cut(name, ".")
	r, err := o.server.rooms.Get(ctx, slug)
	if err != nil || r.Snapshot().Door == nil || o.isForgotten(ctx, r) {
		return nil
	}
	door := r.Snapshot().Door
	for _, m := range door.Methods {
		if own := o.OwnKey(slug, m.Method); m.Name == method && own != "" {
			offer, err := o.offer(ctx, r, m.Method, own, door.Entry)
			if err != nil {
				o.server.cfg.Log.Error("cannot open an offer of the own issuer", "offer", name, "err", err)
				return nil
			}
			return offer
		}
	}
	return nil
}

// offer returns the offer for a method of a room whose key stands for own.
func (o *ownIssuer) offer(ctx context.Context, r *room.Room, m credential.Method, own string,
	entry [32]byte) (*web.Offer, error) {
	if lacks := o.Lacks(own); lacks != "" {
		return nil, errors.New(lacks)
	}
	name := offerName(r.Slug, m.Name)
	to, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	offer := &issuer.Offer{Name: name, Method: m.Name, Room: entry, Limit: m.Limit, Purpose: purpose(proofs[own])}
	for _, l := range r.Snapshot().Lanes {
		offer.Lanes = append(offer.Lanes, string(l.Name))
	}
	found := &web.Offer{Offer: offer, RoomURL: to, Proof: proofs[own], IsRooms: true, Title: r.Snapshot().Title,
		Organizer: o.server.organizerName(ctx, r.Owner.Org)}
	if to.Scheme == o.url.Scheme && to.Host == o.url.Host { // browsers load the brand from no other host
		settings, version := r.Settings()
		logo := o.server.organizers.accounts.Organizations.PublicLogo(ctx, r.Owner.Org)
		found.Brand = web.Brand(brand.LinksOf(to.EscapedPath(), &settings.Brand, version, logo))
	}
	if own == setting.OwnKey {
		if found.List, err = o.list(name); err != nil {
			return nil, err
		}
	}
	if m.Kind == credential.Blind {
		if offer.Key, err = o.dir.BlindKey(blindName(r.Slug, m.Name, own)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// list returns the list of an offer, which is empty before its first code. It reads the file again if another
// program has written it.
func (o *ownIssuer) list(name string) (*issuer.List, error) {
	written, size, err := o.dir.Written(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.issuer.NewList(name, true, "code")
	}
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if read := o.lists[name]; read != nil && read.written.Equal(written) && read.size == size {
		return read.list, nil
	}
	list, err := o.dir.List(o.issuer, name)
	if err != nil {
		return nil, err
	}
	o.lists[name] = &readList{written, size, list}
	return list, nil
}
