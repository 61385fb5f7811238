package site

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
)

// maxDocument is the maximum size of a document in bytes. With the header and the signature its
// note stays within the 1,000,000 bytes that connectors accept.
const maxDocument = 999_000

// maxHosts is the maximum total size in bytes of a document's hosts, because lists of sites include
// them.
const maxHosts = 32_000

// normal returns a document without the characters that a signed note cannot hold. Its meaning stays the same,
// because JSON strings contain neither tabs nor line breaks.
func normal(document []byte) string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "  ").Replace(string(document))
	return strings.TrimRight(text, " \n") + "\n"
}

// fingerprint returns the activity-log detail that identifies a document.
func fingerprint(document []byte) map[string]any {
	sum := sha256.Sum256([]byte(normal(document)))
	return map[string]any{"sha256": hex.EncodeToString(sum[:])}
}

// document is a parsed rules document and the text to store.
type document struct {
	*rules.Site
	text string
}

// parse parses a document the way connectors do. It parses the original text, because [normal] would
// hide an invalid tab inside a string. The error is an [*invalid.Error].
func parse(text []byte) (document, error) {
	kept := normal(text)
	if len(kept) > maxDocument || len(text) > rules.MaxSize {
		return document{}, invalid.Field("rules", fmt.Sprintf("must be at most %d bytes", maxDocument))
	}
	if !utf8.Valid(text) {
		return document{}, invalid.Field("rules", "must be UTF-8")
	}
	read, err := rules.Parse(text)
	if err != nil {
		return document{}, asInvalid(err)
	}
	size := 0
	for _, host := range read.Hosts {
		size += len(host)
	}
	if size > maxHosts {
		return document{}, invalid.Field("hosts",
			fmt.Sprintf("must have at most %d bytes in total; * matches any characters", maxHosts))
	}
	return document{read, kept}, nil
}

// asInvalid converts errors of the rules package to an [*invalid.Error].
func asInvalid(err error) error {
	wrong, ok := errors.AsType[*rules.InvalidError](err)
	if !ok {
		return err
	}
	var list invalid.List
	for _, p := range wrong.Problems {
		if p.Field == "" {
			p.Field = "rules" // the document as a whole
		}
		list.Add(p.Field, p.Detail)
	}
	return list.Err()
}

// read parses a document and checks the rooms that it names.
func (s *Sites) read(ctx context.Context, org uuid.UUID, text []byte) (document, error) {
	d, err := parse(text)
	if err != nil {
		return d, err
	}
	var wrong invalid.List
	for _, name := range d.names() {
		named := d.Rooms[name]
		place, err := s.locate(ctx, org, named.URL)
		if err != nil {
			return d, err
		}
		switch {
		case place.refusal != "":
			wrong.Add("rooms."+name+".url", place.refusal)
		case place.isHere && named.Origin != place.record.Origin: // connectors would refuse every pass
			wrong.Add("rooms."+name+".origin", "must be the room's origin: "+place.record.Origin)
		}
	}
	return d, wrong.Err()
}

// names returns the names of the rooms, sorted.
func (d document) names() []string { return slices.Sorted(maps.Keys(d.Rooms)) }

// hosts returns the hosts in document order, never nil.
func (d document) hosts() []string { return append([]string{}, d.Hosts...) }

// rooms returns the URLs of all rooms, sorted and without duplicates.
func (d document) rooms() []string {
	urls := []string{}
	for _, r := range d.Rooms {
		urls = append(urls, r.URL)
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// Check reports which rule decides about each URL when a browser opens it at the given time, and
// which URLs are unprotected. A document that is not nil is checked instead of the site's rules.
func (s *Sites) Check(ctx context.Context, by account.Actor, name string, document []byte, urls []string,
	at time.Time) ([]rules.Finding, error) {
	site, err := s.Site(ctx, by, name)
	if err != nil {
		return nil, err
	}
	if document == nil {
		document = site.Rules
	}
	return Check(document, urls, at)
}

// Limits for one check.
const (
	MaxURLs     = 100
	maxURL      = 2000   // bytes
	maxMatching = 10_000 // rules times URLs: about a second of work
)

// Check does what [Sites.Check] does, for a document that belongs to no site yet. The error is a
// [*invalid.Error].
func Check(document []byte, urls []string, at time.Time) ([]rules.Finding, error) {
	d, err := parse(document)
	if err != nil {
		return nil, err
	}
	if most := min(MaxURLs, maxMatching/max(1, len(d.Site.Rules))); len(urls) == 0 || len(urls) > most {
		return nil, invalid.Field("urls", fmt.Sprintf("must be 1 to %d URLs for this number of rules", most))
	}
	var list []rules.Finding
	for i, one := range urls {
		found, err := rules.Check(d.Site, []string{one}, at)
		if err != nil || len(one) > maxURL {
			return nil, invalid.Field(fmt.Sprintf("urls[%d]", i),
				fmt.Sprintf("must be a URL that begins with https:// or http://, of at most %d bytes", maxURL))
		}
		list = append(list, found...)
	}
	return list, nil
}
