package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

var (
	// ErrNotOwn means that the server's own issuer does not vouch for a method.
	ErrNotOwn = errors.New("the server's own issuer takes no codes for this method: its key is not own, or the issuer is off")
	// ErrMembers means that a method's list has members, to which codes cannot be added.
	ErrMembers = errors.New("the method's list has members, and no codes")
	// ErrNoBatch means that a method has no batch of codes of that number.
	ErrNoBatch = errors.New("no such batch of codes")
)

// MaxCodes is the maximum number of codes made at once.
const MaxCodes = 100_000

// Issuer is the server's own issuer.
type Issuer interface {
	room.Issuer
	// OwnKey returns which of [setting.OwnKeys] the key of a room's method stands for; empty: another issuer's.
	OwnKey(slug string, m credential.Method) string
	// AddCodes makes codes for a method of a room, and returns them with the number of all. Errors: [ErrMembers].
	AddCodes(slug, method string, count int) (codes []string, total int, err error)
	// Codes returns the batches of codes of a method of a room, from the oldest. Errors: [ErrMembers].
	Codes(ctx context.Context, slug, method string) ([]CodeBatch, error)
	// VoidCodes voids codes of a method of a room, or with check only counts them. Errors: [ErrMembers], [ErrNoBatch].
	VoidCodes(ctx context.Context, slug, method string, which CodesToVoid, check bool) (VoidedCodes, error)
	// SetMembers replaces the members of a method of a room, or with check only reads them. Errors: [*invalid.Error],
	// [ErrCodes].
	SetMembers(slug, method string, columns []string, rows [][]string, check bool) (Members, error)
}

// MakeCodes makes codes, each of which is good for one place. They are stored nowhere: the issuer keeps keyed hashes.
// Errors: those of [Rooms.Room], [*invalid.Error], [ErrNotOwn], [ErrMembers].
func (rs *Rooms) MakeCodes(ctx context.Context, actor account.Actor, slug, method string,
	count int) (codes []string, total int, err error) {
	if count < 1 || count > MaxCodes {
		return nil, 0, invalid.Field("count", fmt.Sprintf("must be a whole number from 1 to %d", MaxCodes))
	}
	detail := map[string]any{"method": method, "count": count}
	_, err = rs.control(ctx, actor, account.Operate, "room.codes", slug, detail, func(r *room.Room) error {
		if !rs.owns(r, method) {
			return ErrNotOwn
		}
		codes, total, err = rs.Issuer.AddCodes(slug, method, count)
		return err
	})
	return codes, total, err
}

// CodeBatch counts codes that were made at once, by what became of them.
type CodeBatch struct {
	Made               time.Time
	Unused, Used, Void int
}

// CodesToVoid names codes: those of a batch, numbered from 1, or else some codes.
type CodesToVoid struct {
	Batch int
	Codes []string
}

// VoidedCodes counts the codes of a [CodesToVoid].
type VoidedCodes struct {
	Voided  int // were unused, and are void now; with check: would be
	Used    int // confirmed a visitor before, who keeps that
	Before  int // were void before
	Unknown int // are no codes of the method, or repeat another one
}

// Codes returns the batches of codes of a method, from the oldest. Errors: those of [Rooms.Room], [ErrNotOwn],
// [ErrMembers].
func (rs *Rooms) Codes(ctx context.Context, actor account.Actor, slug, method string) ([]CodeBatch, error) {
	r, err := rs.room(ctx, actor, account.Operate, slug)
	if err != nil {
		return nil, err
	}
	if !rs.owns(r, method) {
		return nil, ErrNotOwn
	}
	return rs.Issuer.Codes(ctx, slug, method)
}

// VoidCodes voids codes that no visitor has used, or with check only counts them. Errors: those of [Rooms.Room],
// [*invalid.Error], [ErrNotOwn], [ErrMembers].
func (rs *Rooms) VoidCodes(ctx context.Context, actor account.Actor, slug, method string, which CodesToVoid,
	check bool) (v VoidedCodes, err error) {
	switch {
	case (which.Batch == 0) == (len(which.Codes) == 0):
		return v, invalid.Field("codes", "or a batch is required")
	case len(which.Codes) > MaxCodes:
		return v, invalid.Field("codes", fmt.Sprintf("must be at most %d", MaxCodes))
	}
	void := func(r *room.Room) error {
		if !rs.owns(r, method) {
			return ErrNotOwn
		}
		v, err = rs.Issuer.VoidCodes(ctx, slug, method, which, check)
		if errors.Is(err, ErrNoBatch) {
			err = invalid.Field("batch", "must be the number of a batch")
		}
		return err
	}
	if check {
		r, err := rs.room(ctx, actor, account.Operate, slug)
		if err != nil {
			return v, err
		}
		return v, void(r)
	}
	detail := map[string]any{"method": method}
	_, err = rs.control(ctx, actor, account.Operate, "room.void_codes", slug, detail, func(r *room.Room) error {
		err := void(r)
		detail["count"] = v.Voided
		return err
	})
	return v, err
}

// OwnMethods returns the names of the methods of a room for which the server's own issuer takes codes.
func (rs *Rooms) OwnMethods(r *room.Room) (names []string) {
	for _, m := range r.Policy().Methods {
		if rs.owns(r, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// owns reports whether the server's own issuer takes codes for a method of a room.
func (rs *Rooms) owns(r *room.Room, method string) bool {
	return slices.ContainsFunc(r.Policy().Methods, func(m credential.Method) bool {
		return m.Name == method && rs.ownKey(r, m) == setting.OwnKey
	})
}

func (rs *Rooms) ownKey(r *room.Room, m credential.Method) string {
	if rs.Issuer == nil {
		return ""
	}
	return rs.Issuer.OwnKey(r.Slug, m)
}

// forCopy gives the methods of a copy of a room keys and pages of their own, where the server's own issuer vouches
// for them.
func (rs *Rooms) forCopy(r *room.Room, c room.Config) room.Config {
	c.Methods, c.Issuers = slices.Clone(c.Methods), slices.Clone(c.Issuers)
	for i, m := range c.Methods {
		if own := rs.ownKey(r, m); own != "" {
			c.Methods[i].Key = own
			c.Issuers = slices.DeleteFunc(c.Issuers, func(text string) bool {
				page, _ := setting.ParseIssuer(text)
				return page.Method == m.Name
			})
		}
	}
	return c
}
