package roomlog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

// ErrWrong is returned for a log that is not signed by its key, or that does not hash to what was signed.
var ErrWrong = errors.New("the log of rooms is wrong")

// ErrNoLog is returned for a log whose first entry does not name its key, when the reader does not know that either.
var ErrNoLog = errors.New("not a log of rooms")

// MaxEntries is the maximum size of a log that [Read] reads: the list is kept in memory.
const MaxEntries = 1 << 20

// ErrTooLarge is returned for a log of more than [MaxEntries] entries.
var ErrTooLarge = errors.New("the log of rooms is too large to read")

// Published is a log of rooms that was read and verified.
type Published struct {
	List
	Head      audit.Checkpoint
	Cosigners []string // names of the known witnesses that cosigned the checkpoint
}

// Read reads the log behind a signed checkpoint: every entry and every tile of hashes. The key is vkey, or, if that
// is empty, the one in the log's first entry, which its author chose. Witnesses are those that the reader knows.
// Errors are [ErrWrong], [ErrEntry] for a log that is signed but breaks the rules, [ErrNoLog], [ErrTooLarge], and those
// of fetch.
func Read(ctx context.Context, fetch audit.TileFetcher, signed []byte, vkey string,
	witnesses ...audit.Witness) (*Published, error) {
	claimed, err := audit.UnverifiedCheckpoint(signed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrong, err)
	}
	if claimed.Size > MaxEntries {
		return nil, fmt.Errorf("%w: it has %d entries", ErrTooLarge, claimed.Size)
	}
	p := &Published{}
	leaves, refused, err := p.readEntries(ctx, fetch, claimed.Size)
	if err != nil {
		return nil, err
	}
	if vkey == "" {
		if vkey = p.VKey(); vkey == "" {
			return nil, fmt.Errorf("%w: %w", ErrNoLog, cmp.Or(refused, errors.New("it has no entries")))
		}
	}
	if err := p.open(signed, vkey, witnesses); err != nil {
		return nil, err
	}
	if err := checkTiles(ctx, fetch, p.Head, leaves); err != nil {
		return nil, err
	}
	if refused == nil && p.Size() > 0 && p.VKey() != vkey {
		refused = fmt.Errorf("%w: its first entry names the key %.200q, but it is signed with %.200q", ErrWrong, p.VKey(), vkey)
	}
	return p, refused // after the signature: from here on the log's author is to blame
}

// readEntries applies the entries, up to the first that is refused, and returns the hashes of all.
func (p *Published) readEntries(ctx context.Context, fetch audit.TileFetcher, size uint64) (leaves []audit.Hash,
	refused, err error) {
	for t := range audit.Tiles(size) {
		if t.Level >= 0 {
			break
		}
		bundle, err := fetch(ctx, t)
		if err != nil {
			return nil, nil, fmt.Errorf("read %s: %w", t.Path(), err)
		}
		if err := audit.SplitBundle(bundle, t.Width, func(entry []byte) error {
			leaves = append(leaves, audit.LeafHash(entry))
			if refused == nil {
				refused = p.Add(entry)
			}
			return nil
		}); err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrWrong, t.Path(), err)
		}
	}
	return leaves, refused, nil
}

// open verifies the signatures of the checkpoint.
func (p *Published) open(signed []byte, vkey string, witnesses []audit.Witness) error {
	key, err := audit.ParseKey(vkey)
	if err != nil {
		return fmt.Errorf("%w: its key is unknown: %w", ErrWrong, err)
	}
	verifiers := make([]note.Verifier, len(witnesses))
	for i, w := range witnesses {
		verifiers[i] = w
	}
	var n *note.Note
	if p.Head, n, err = audit.OpenCheckpoint(signed, key, verifiers...); err != nil {
		return fmt.Errorf("%w: %w", ErrWrong, err)
	}
	for _, w := range witnesses {
		if _, ok := w.Cosignature(n); ok {
			p.Cosigners = append(p.Cosigners, w.Name())
		}
	}
	return nil
}

// checkTiles compares the hashes of the entries with the root and with every tile.
func checkTiles(ctx context.Context, fetch audit.TileFetcher, head audit.Checkpoint, leaves []audit.Hash) error {
	var tree audit.Tree
	for _, leaf := range leaves {
		tree.Append(leaf)
	}
	if tree.Root() != head.Root {
		return fmt.Errorf("%w: its %d entries hash to %v, but the signed root is %v", ErrWrong, head.Size, tree.Root(),
			head.Root)
	}
	levels := [][]audit.Hash{leaves}
	for t := range audit.Tiles(head.Size) {
		if t.Level < 0 {
			continue
		}
		if int(t.Level) == len(levels) {
			levels = append(levels, roots(levels[t.Level-1]))
		}
		first := t.Index * audit.TileWidth
		var want []byte
		for _, h := range levels[t.Level][first:][:t.Width] {
			want = append(want, h[:]...)
		}
		tile, err := fetch(ctx, t)
		if err != nil {
			return fmt.Errorf("read %s: %w", t.Path(), err)
		}
		if !bytes.Equal(tile, want) {
			return fmt.Errorf("%w: %s does not match the entries", ErrWrong, t.Path())
		}
	}
	return nil
}

// roots returns the roots of the full tiles of a level.
func roots(hashes []audit.Hash) (list []audit.Hash) {
	for ; len(hashes) >= audit.TileWidth; hashes = hashes[audit.TileWidth:] {
		var tile audit.Tree
		for _, h := range hashes[:audit.TileWidth] {
			tile.Append(h)
		}
		list = append(list, tile.Root())
	}
	return list
}

// Alike returns the other rooms whose names, the last parts of their origins, differ from the room's only in what
// operators add for another try: a number or a short part at the end, or further parts.
func (l *List) Alike(origin string) (others []*Listed) {
	name := stem(origin)
	for _, r := range l.rooms {
		other := stem(r.Origin)
		isAlike := other == name || strings.HasPrefix(other, name+"-") || strings.HasPrefix(name, other+"-")
		if r.Origin != origin && isAlike {
			others = append(others, r)
		}
	}
	return others
}

// shortPart is the maximum length of a last part that the stem of a name leaves out, such as "b" or "v2".
const shortPart = 2

// stem returns the name in an origin without the numbers and short parts at its end.
func stem(origin string) string {
	name := origin[strings.LastIndexByte(origin, '/')+1:]
	for {
		short := strings.TrimRight(name, "-0123456789")
		if at := strings.LastIndexByte(short, '-'); at >= 0 && len(short)-at-1 <= shortPart {
			short = short[:at]
		}
		if short == name || short == "" {
			return name
		}
		name = short
	}
}

// VKeyOf returns the key in the first entry of a log of rooms. It proves nothing by itself, because the log's
// author chose it.
func VKeyOf(first []byte) (string, error) {
	e, err := Parse(first)
	if err == nil && e.Kind != Begin {
		err = fmt.Errorf("%w: the first entry does not begin a log", ErrEntry)
	}
	return e.VKey, err
}
