package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/internal/localpg"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/regression"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// Opened are the rooms of a server, for a command that works on them.
type Opened struct {
	*room.Rooms
	OwnerURL string       // URL of the database for the owner of its schema
	Stop     func() error // must be called
}

// OpenRooms opens a server's database for a command that works on its rooms. The
// server may be running.
func OpenRooms(ctx context.Context, cfg Config) (rooms *Opened, err error) {
	s := &Server{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.cfg.DatabaseURL != "" && s.cfg.MasterKey == "" {
		return nil, ErrNoMasterKey
	}
	if local, ok := localpg.Running(ctx, cfg.Data); cfg.DatabaseURL == "" && ok {
		s.cfg.DatabaseURL, s.cfg.OwnerURL = local.URLOf(pglog.Role), local.URL()
	}
	if err := s.openDatabase(ctx); err != nil {
		return nil, err
	}
	text, err := s.masterKeyText(ctx)
	if err == nil {
		s.masterKey, err = keys.ParseMasterKey(text)
	}
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	marks, err := mark.Read(filepath.Join(cfg.Data, MarksDir))
	if err == nil {
		err = openBucket(ctx, marks, &cfg)
	}
	if err != nil {
		return nil, err
	}
	owner := cmp.Or(s.cfg.OwnerURL, s.cfg.DatabaseURL)
	if s.local != nil {
		owner = s.local.URL()
	}
	return &Opened{room.New(room.Options{
		Logs: s.logs(), Store: pgroom.NewStore(s.pool), MasterKey: s.masterKey, Log: cfg.Log, Marks: marks,
		PublicURL: cfg.PublicURL,
	}), owner, s.Stop}, nil
}

// CopyOf opens a copy of a room's transcript: a directory or archive that
// proofline-verify fetched, the room's URL on a server that still publishes it, or
// another database, such as the primary before a failover.
func CopyOf(from, slug, vkey string) (regression.Copy, error) {
	if strings.HasPrefix(from, "postgres://") || strings.HasPrefix(from, "postgresql://") {
		return copyOfDatabase(from, slug), nil
	}
	src, err := source.Open(from)
	if err != nil {
		return nil, err
	}
	key, err := note.NewVerifier(vkey)
	if err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	return copyOfSource(src, key), nil
}

func copyOfDatabase(url, slug string) regression.Copy {
	return func(ctx context.Context, read func([]byte) error) error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return fmt.Errorf("open copy: %w", err)
		}
		defer pool.Close()
		return pglog.NewStore(pool).Open(pgroom.RoomID(slug), "", nil).Tail(ctx, read)
	}
}

func copyOfSource(src verifier.Source, key note.Verifier) regression.Copy {
	return func(ctx context.Context, read func([]byte) error) error {
		signed, err := src.Checkpoint(ctx)
		if err != nil {
			return err
		}
		head, _, err := audit.OpenCheckpoint(signed, key)
		if err != nil {
			return err
		}
		tree := &audit.Tree{}
		for tile := range audit.Tiles(head.Size) {
			if tile.Level >= 0 {
				continue
			}
			bundle, err := src.Tile(ctx, tile)
			if err != nil {
				return err
			}
			if err := audit.SplitBundle(bundle, tile.Width, func(entry []byte) error {
				tree.Append(audit.LeafHash(entry))
				return read(entry)
			}); err != nil {
				return err
			}
		}
		if tree.Root() != head.Root {
			return fmt.Errorf("%w: the copy's entries do not match its checkpoint", regression.ErrOtherHistory)
		}
		return nil
	}
}
