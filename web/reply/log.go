package reply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit"
)

// Log is a published log.
type Log interface {
	// Checkpoint returns the published checkpoint.
	Checkpoint(ctx context.Context) ([]byte, error)
	// Tile returns a tile or entry bundle.
	Tile(ctx context.Context, t audit.Tile) ([]byte, error)
}

// Checkpoint serves the published checkpoint of a log.
//
// https://c2sp.org/tlog-tiles#checkpoints
func Checkpoint(c echo.Context, log Log) error {
	note, err := log.Checkpoint(c.Request().Context())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(note)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := c.Response().Header()
	h["Cache-Control"] = NoCache
	h["Etag"] = []string{etag}
	if IsKnown(c.Request(), etag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	return Send(c, http.StatusOK, Text, note)
}

// Tile serves a tile of hashes or a bundle of entries of a log; the path below tile/ is the last parameter. Tiles of
// any width are immutable: the width is part of the name, and a log only grows. Only entries are compressed, because
// hashes do not shrink.
//
// https://c2sp.org/tlog-tiles#merkle-tree
func Tile(c echo.Context, log Log) error {
	t, err := audit.ParseTilePath("tile/" + c.Param("*"))
	if err != nil {
		return err
	}
	content, err := log.Tile(c.Request().Context(), t)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = Immutable
	if t.Level < 0 {
		content = Coded(c, content, func() []byte { return Compress(content) })
	}
	return Send(c, http.StatusOK, Octets, content)
}

// IsKnown reports whether the client has the version with this entity tag, by weak comparison
// (https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2).
func IsKnown(r *http.Request, etag string) bool {
	known := r.Header["If-None-Match"]
	return len(known) > 0 && (known[0] == "*" || strings.Contains(known[0], strings.TrimPrefix(etag, "W/")))
}
