// Package crowded renders the error pages of visitors who are to retry later. They must cost less than the refused
// requests, so each is rendered once for a kind and a language.
package crowded

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/proofline/proofline/web/page"
)

// Placeholders in a cached page: of the path to the line, and of the seconds until the page goes there.
const (
	somePath = "/-path-"
	someWait = 987_654_321
)

// Pages go to the line at the time in Retry-After, each a little later than that, and within some minutes even if the
// limit of a day is reached: the visitor may have another network by then.
const (
	maxWait = 5 * time.Minute
	spread  = 10 * time.Second
)

// Pages are the rendered pages. The zero value is ready to use. It is safe for concurrent use.
type Pages struct{ byKind sync.Map } // keys are key, values []byte

type key struct {
	kind page.Kind
	lang page.Lang
}

// Page returns the page of a kind, which goes to a path by itself after a wait.
func (p *Pages) Page(from *page.Pages, kind page.Kind, lang page.Lang, path string, wait time.Duration,
) ([]byte, error) {
	kept, ok := p.byKind.Load(key{kind, lang})
	if !ok {
		var b bytes.Buffer
		if err := from.Error(&b, page.ErrorView{Lang: lang, Kind: kind, Again: somePath, After: someWait}); err != nil {
			return nil, err
		}
		kept = b.Bytes()
		p.byKind.Store(key{kind, lang}, kept)
	}
	body, _ := kept.([]byte)
	wait = min(wait, maxWait) + rand.N(spread) //nolint:gosec // spreads load; no secret
	seconds := int64((wait + time.Second - 1) / time.Second)
	body = bytes.ReplaceAll(body, []byte(somePath), []byte(path))
	return bytes.ReplaceAll(body, []byte(strconv.Itoa(someWait)), strconv.AppendInt(nil, seconds, 10)), nil
}
