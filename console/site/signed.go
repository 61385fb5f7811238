package site

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/site/pgsite"
)

// noteHeader is the first line of a signed rules document.
const noteHeader = "proofline-rules/v1"

// key is the key with which an organization signs its rules.
type key struct {
	signer note.Signer
	public string // verifier key in the text form of the note package
}

// purpose binds a sealed key to its organization.
func purpose(org uuid.UUID) string { return "site/" + org.String() }

// Key returns the key with which connectors verify the rules of the actor's organization, in the text
// form of the note package: NAME+HASH+BASE64.
func (s *Sites) Key(ctx context.Context, by account.Actor) (string, error) {
	if !by.May(account.Read) {
		return "", account.ErrForbidden
	}
	k, err := s.key(ctx, by.Org)
	return k.public, err
}

// key returns the key of an organization, and creates it on first use.
func (s *Sites) key(ctx context.Context, org uuid.UUID) (key, error) {
	s.mu.Lock()
	k, ok := s.keys[org]
	s.mu.Unlock()
	if ok {
		return k, nil
	}
	stored, err := s.Store.Key(ctx, org)
	if errors.Is(err, pgsite.ErrNotFound) {
		stored, err = s.newKey(ctx, org)
	}
	if err != nil {
		return key{}, err
	}
	seed, err := s.Sealer.Open(purpose(org), stored.Sealed)
	if err != nil {
		return key{}, fmt.Errorf("open site key: %w", err)
	}
	if k.signer, k.public, err = audit.NewSigner(stored.Name, seed); err != nil {
		return key{}, fmt.Errorf("open site key: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[org] = k
	return k, nil
}

// newKey creates the key of an organization. If several nodes create one at once, all return the one
// that was stored.
func (s *Sites) newKey(ctx context.Context, org uuid.UUID) (pgsite.Key, error) {
	slug, err := s.Slug(ctx, org)
	if err != nil {
		return pgsite.Key{}, fmt.Errorf("name site key: %w", err)
	}
	public, err := url.Parse(s.Rooms.PublicURL)
	if err != nil {
		return pgsite.Key{}, fmt.Errorf("name site key: %w", err)
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(s.Rand, seed); err != nil {
		return pgsite.Key{}, fmt.Errorf("make site key: %w", err)
	}
	return s.Store.AddKey(ctx, org, pgsite.Key{Name: public.Host + "/o/" + slug,
		Sealed: s.Sealer.Seal(purpose(org), seed)})
}

// Signed is a rules document as connectors fetch it.
type Signed struct {
	Version uint64
	Note    []byte // C2SP signed note, of at most 1,000,000 bytes
	ETag    string // changes with the note
}

// Signed returns the rules of a site, signed.
func (s *Sites) Signed(ctx context.Context, by account.Actor, name string) (Signed, error) {
	if !by.May(account.Connect) {
		return Signed{}, account.ErrForbidden
	}
	if !nameForm.MatchString(name) {
		return Signed{}, account.ErrNotFound
	}
	version, err := s.Store.CurrentVersion(ctx, by.Org, name)
	if err != nil {
		_, err = known(by.Org)(pgsite.Site{}, err)
		return Signed{}, err
	}
	id := noteID{by.Org, name}
	s.mu.Lock()
	out, ok := s.notes[id]
	s.mu.Unlock()
	if ok && out.Version == version {
		return out, nil
	}
	site, err := s.site(ctx, by.Org, name)
	if err != nil {
		return Signed{}, err
	}
	if out, err = s.sign(ctx, site); err != nil {
		return Signed{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes.put(id, out)
	return out, nil
}

// sign makes the note of a site. All nodes produce the same bytes, because Ed25519 is
// deterministic.
func (s *Sites) sign(ctx context.Context, site Site) (Signed, error) {
	k, err := s.key(ctx, site.Org)
	if err != nil {
		return Signed{}, err
	}
	text := fmt.Sprintf("%s\n%s\n%d\n%s", noteHeader, site.Name, site.Version, site.Rules)
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	if err != nil {
		return Signed{}, fmt.Errorf("sign rules: %w", err)
	}
	sum := sha256.Sum256(signed)
	return Signed{site.Version, signed, `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`}, nil
}

// maxNotes limits the total size of cached notes, in bytes.
const maxNotes = 64 << 20

// noteID identifies the site of a note.
type noteID struct {
	org  uuid.UUID
	name string
}

// notes caches the latest note of each site.
type notes map[noteID]Signed

// put stores a note. If the cache would exceed [maxNotes], it drops all other notes first.
func (n notes) put(id noteID, s Signed) {
	size := len(s.Note)
	for other, kept := range n {
		if other != id {
			size += len(kept.Note)
		}
	}
	if size > maxNotes {
		clear(n)
	}
	n[id] = s
}
