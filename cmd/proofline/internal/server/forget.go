package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/internal/personal"
	"github.com/proofline/proofline/room/pgroom"
)

// newRetention returns the job that deletes personal data.
func (s *Server) newRetention(files ...retention.Files) *retention.Job {
	o := retention.Options{Store: personal.NewStore(s.pool), Files: files, Keep: s.cfg.KeepPersonal, Log: s.cfg.Log}
	if s.rooms != nil {
		o.Rooms = func() (ahead, step time.Duration) {
			h := s.rooms.Health()
			return h.Ahead, h.Step
		}
	}
	job := retention.New(o)
	s.retention.Store(job)
	return job
}

// Forget opens a server's database to delete personal data, and the files of its own issuer unless a server that runs
// has them. The caller must call closeAll.
func Forget(ctx context.Context, cfg Config) (job *retention.Job, closeAll func() error, err error) {
	s := &Server{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if err := s.openStored(ctx); err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(cfg.Data, IssuerDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return s.newRetention(), s.Stop, nil
	}
	store, err := issuer.OpenStore(dir)
	if errors.Is(err, issuer.ErrLocked) {
		return s.newRetention(), s.Stop, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s.atStop(func(context.Context) error { return store.Close() })
	return s.newRetention(issuerFiles{issuerdir.Dir(dir), store, pgroom.NewStore(s.pool)}), s.Stop, nil
}

// issuerFiles is what the own issuer knows about visitors: lists, and records of what was issued, as keyed hashes.
type issuerFiles struct {
	dir   issuerdir.Dir
	store *issuer.Store
	rooms *pgroom.Store
}

// Name implements [retention.Files].
func (issuerFiles) Name() string { return IssuerDir }

// Forget implements [retention.Files]. The time of a room's files counts from its end.
func (f issuerFiles) Forget(ctx context.Context, t personal.Times, check bool) (int64, error) {
	rooms, err := f.rooms.List(ctx)
	if err != nil {
		return 0, err
	}
	over := map[string]bool{}
	for i := range rooms {
		over[rooms[i].Slug] = rooms[i].Ended != nil && rooms[i].Ended.Before(t.Since)
	}
	isOver := func(name string) bool {
		slug, _, _ := strings.Cut(name, ".")
		return over[slug]
	}
	records, err := f.store.Forget(isOver, check)
	if err != nil {
		return records, err
	}
	entries, err := f.dir.RemoveLists(isOver, check)
	return records + entries, err
}
