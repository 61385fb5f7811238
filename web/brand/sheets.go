package brand

import (
	"sync"

	"github.com/proofline/proofline/room/branding"
)

// Sheets caches the style sheet of each room, because parsing custom CSS takes milliseconds. The zero value is ready to
// use. It is safe for concurrent use.
type Sheets struct{ bySlug sync.Map } // values are *sheet

type sheet struct {
	version int64 // version of the settings
	css     []byte
}

// Of returns the style sheet of a room whose settings have a version.
func (all *Sheets) Of(slug string, version int64, b *branding.Brand) ([]byte, error) {
	if found, ok := all.bySlug.Load(slug); ok {
		if known, _ := found.(*sheet); known.version == version {
			return known.css, nil
		}
	}
	looks := Looks(b)
	css, err := looks.CSS()
	if err != nil {
		return nil, err
	}
	all.bySlug.Store(slug, &sheet{version, css})
	return css, nil
}
