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
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
)

// maxDocument is the most bytes of a document: with what stands around it, its
// note is within the 1,000,000 bytes that connectors take.
const maxDocument = 999_000

// maxHosts is the most bytes of all hosts that a document names: lists of sites
// have them.
const maxHosts = 32_000

// normal is a document as it is kept: without what a signed note cannot hold.
// Strings of JSON have neither tabs nor ends of lines, so it says the same.
func normal(document []byte) string {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "  ").Replace(string(document))
	return strings.TrimRight(text, " \n") + "\n"
}

// fingerprint is what acts say of a document: enough to tell which one it was.
func fingerprint(document []byte) map[string]any {
	sum := sha256.Sum256([]byte(normal(document)))
	return map[string]any{"sha256": hex.EncodeToString(sum[:])}
}

// document is one that was read.
type document struct {
	*rules.Site
	text string
}

// parse reads a document as connectors do: as it was written, for what is kept
// would pass with a tab in a text. The error is a *[room.InvalidError].
func parse(text []byte) (document, error) {
	kept := normal(text)
	if len(kept) > maxDocument || len(text) > rules.MaxSize {
		return document{}, invalid("rules", "must be at most %d bytes", maxDocument)
	}
	if !utf8.Valid(text) {
		return document{}, invalid("rules", "must be UTF-8")
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
		return document{}, invalid("hosts", "must have at most %d bytes altogether; * stands for any characters", maxHosts)
	}
	return document{read, kept}, nil
}

// asInvalid says what is wrong with a document as this server says it.
func asInvalid(err error) error {
	wrong, ok := errors.AsType[*rules.InvalidError](err)
	if !ok {
		return err
	}
	out := &room.InvalidError{}
	for _, p := range wrong.Problems {
		if p.Field == "" {
			p.Field = "rules" // the document as a whole
		}
		out.Problems = append(out.Problems, fairness.Problem(p))
	}
	return out
}

// read parses a document, and looks at its rooms.
func (s *Sites) read(ctx context.Context, org uuid.UUID, text []byte) (document, error) {
	d, err := parse(text)
	if err != nil {
		return d, err
	}
	var wrong []fairness.Problem
	for _, name := range d.names() {
		named := d.Rooms[name]
		place, err := s.locate(ctx, org, named.URL)
		if err != nil {
			return d, err
		}
		switch {
		case place.refusal != "":
			wrong = append(wrong, fairness.Problem{Field: "rooms." + name + ".url", Detail: place.refusal})
		case place.isHere && named.Origin != place.record.Origin: // every pass would be refused
			wrong = append(wrong, fairness.Problem{Field: "rooms." + name + ".origin", Detail: "must be that of the room: " + place.record.Origin})
		}
	}
	if len(wrong) > 0 {
		return d, &room.InvalidError{Problems: wrong}
	}
	return d, nil
}

// names are those of the rooms, in order.
func (d document) names() []string { return slices.Sorted(maps.Keys(d.Rooms)) }

// hosts are those that the document names, in its order.
func (d document) hosts() []string { return append([]string{}, d.Hosts...) }

// rooms are the URLs of all rooms, each once.
func (d document) rooms() []string {
	urls := []string{}
	for _, r := range d.Rooms {
		urls = append(urls, r.URL)
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}

// Check says which rule of a site decides about each URL when a browser opens it
// at a time, and what is not protected. A document that is not nil is looked at
// in the place of the site's own.
func (s *Sites) Check(ctx context.Context, by account.Actor, name string, document []byte, urls []string, at time.Time) ([]rules.Finding, error) {
	site, err := s.Site(ctx, by, name)
	if err != nil {
		return nil, err
	}
	if document == nil {
		document = site.Rules
	}
	return Check(document, urls, at)
}

// Bounds of what is checked at once.
const (
	MaxURLs     = 100
	maxURL      = 2000   // bytes
	maxMatching = 10_000 // rules times URLs: about a second of work at worst
)

// Check is [Sites.Check] of a document that is of no site yet. The error is a
// *[room.InvalidError].
func Check(document []byte, urls []string, at time.Time) ([]rules.Finding, error) {
	d, err := parse(document)
	if err != nil {
		return nil, err
	}
	if most := min(MaxURLs, maxMatching/max(1, len(d.Site.Rules))); len(urls) == 0 || len(urls) > most {
		return nil, invalid("urls", "must be 1 to %d, for so many rules", most)
	}
	var list []rules.Finding
	for i, one := range urls {
		found, err := rules.Check(d.Site, []string{one}, at)
		if err != nil || len(one) > maxURL {
			return nil, invalid(fmt.Sprintf("urls[%d]", i), "must be a URL that begins with https:// or http://, of at most %d bytes", maxURL)
		}
		list = append(list, found...)
	}
	return list, nil
}
