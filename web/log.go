package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/room"
)

// Tiles of any width are immutable: the width is part of the name, and a log only grows. So partial
// tiles are cached as long as full ones.
var (
	immutable      = []string{"public, max-age=31536000, immutable"}
	discoveryCache = []string{"public, max-age=3600"}
	acceptEncoding = []string{"Accept-Encoding"}
	gzipped        = []string{"gzip"}
)

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
	h["Cache-Control"] = noCache
	h["Etag"] = []string{etag}
	if isKnown(c.Request(), etag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	return send(c, http.StatusOK, plainText, note)
}

// sendTile serves a tile of hashes or a bundle of entries. Only entries are compressed, because hashes do not
// shrink.
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
	h := c.Response().Header()
	h["Cache-Control"] = immutable
	if t.Level < 0 {
		h["Vary"] = acceptEncoding
		if acceptsGzip(c.Request().Header["Accept-Encoding"]) {
			h["Content-Encoding"] = gzipped
			content = compress(content)
		}
	}
	return send(c, http.StatusOK, octets, content)
}

// acceptsGzip reports whether Accept-Encoding headers allow gzip
// (https://www.rfc-editor.org/rfc/rfc9110#section-12.5.3).
func acceptsGzip(headers []string) bool {
	for coding := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q, isWeight := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			return !isWeight || strings.Trim(q, "0.") != ""
		}
	}
	return false
}

var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	_, _ = w.Write(content) // memory writes do not fail
	_ = w.Close()
	return b.Bytes()
}

// sendPassKeys serves the keys that verify the room's passes, as a JSON Web Key Set
// (https://www.rfc-editor.org/rfc/rfc7517#section-5). Caches must revalidate it, because a new key
// signs at once.
func sendPassKeys(c echo.Context, r *room.Room) error {
	c.Response().Header()["Cache-Control"] = noCache
	return c.JSON(http.StatusOK, map[string]any{"keys": r.Sessions.PublicKeys()})
}
