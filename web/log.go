package web

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/reply"
)

var discoveryCache = []string{"public, max-age=3600"}

// sendCheckpoint serves the published checkpoint.
//
// https://c2sp.org/tlog-tiles#checkpoints
func sendCheckpoint(c echo.Context, r *room.Room) error {
	note, err := r.Transcript.Checkpoint(c.Request().Context())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(note)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	h := c.Response().Header()
	h["Cache-Control"] = reply.NoCache
	h["Etag"] = []string{etag}
	if isKnown(c.Request(), etag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	return reply.Send(c, http.StatusOK, reply.Text, note)
}

// sendTile serves a tile of hashes or a bundle of entries. Tiles of any width are immutable: the width is part of the
// name, and a log only grows. Only entries are compressed, because hashes do not shrink.
//
// https://c2sp.org/tlog-tiles#merkle-tree
func sendTile(c echo.Context, r *room.Room) error {
	t, err := audit.ParseTilePath("tile/" + c.Param("*"))
	if err != nil {
		return room.ErrNotFound
	}
	content, err := r.Transcript.Tile(c.Request().Context(), t)
	if err != nil {
		return err
	}
	c.Response().Header()["Cache-Control"] = reply.Immutable
	if t.Level < 0 {
		content = reply.Coded(c, content, func() []byte { return reply.Compress(content) })
	}
	return reply.Send(c, http.StatusOK, reply.Octets, content)
}

// sendPassKeys serves the keys that verify the room's passes, as a JSON Web Key Set
// (https://www.rfc-editor.org/rfc/rfc7517#section-5). Caches must revalidate it, because a new key
// signs at once.
func sendPassKeys(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = reply.NoCache
	return c.JSON(http.StatusOK, map[string]any{"keys": r.Sessions.PublicKeys()})
}
