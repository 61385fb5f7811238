package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/page"
)

const assetsPath = "/assets/"

const manifestFile = "manifest.json"

// noManifest replaces the manifest if the assets are not built. Pages then have no scripts and
// styles: these links return 404.
const noManifest = `{"page.js": "page.js", "checker.js": "checker.js", "page.css": "page.css", "icon.svg": "icon.svg"}`

// assetTypes maps the extensions of served files to their media types.
var assetTypes = map[string][]string{
	".js":    {"text/javascript; charset=utf-8"},
	".css":   {"text/css; charset=utf-8"},
	".svg":   {"image/svg+xml"},
	".png":   {"image/png"},
	".woff2": {"font/woff2"},
}

// asset is a built file whose name contains a hash of its content.
type asset struct {
	contentType []string
	plain       []byte
	gzip        []byte // nil if it is not shorter
}

// loadAssets reads all built files into memory and compresses them.
func loadAssets(dist fs.FS) (map[string]*asset, error) {
	all := map[string]*asset{}
	err := fs.WalkDir(dist, ".", func(name string, entry fs.DirEntry, err error) error {
		contentType := assetTypes[path.Ext(name)]
		if err != nil || entry.IsDir() || contentType == nil {
			return err
		}
		plain, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		all[name] = &asset{contentType, plain, shorter(plain)}
		return nil
	})
	return all, err
}

// shorter returns b compressed, or nil if that is not shorter.
func shorter(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = w.Write(b)                                       // memory writes do not fail
	_ = w.Close()
	if out.Len() >= len(b) {
		return nil
	}
	return out.Bytes()
}

// loadPages loads the pages and their assets. If the assets are missing or do not match the pages, it
// logs that and returns pages without scripts and styles.
func loadPages(dist fs.FS, log *slog.Logger) (*page.Pages, map[string]*asset, error) {
	pages, all, err := loadBuilt(dist)
	if err == nil {
		return pages, all, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		log.Warn("assets are not built: pages have no scripts and styles; run make build")
	} else {
		log.Error("cannot load assets: pages have no scripts and styles; run make build", "err", err)
	}
	pages, err = page.New([]byte(noManifest))
	return pages, nil, err
}

func loadBuilt(dist fs.FS) (*page.Pages, map[string]*asset, error) {
	manifest, err := fs.ReadFile(dist, manifestFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read manifest: %w", err)
	}
	pages, err := page.New(manifest)
	if err != nil {
		return nil, nil, err
	}
	all, err := loadAssets(dist)
	return pages, all, err
}

// assetPolicy lets the checker fetch the log: a worker has the policy of its own script
// (https://www.w3.org/TR/CSP3/#initialize-global-object-csp).
var assetPolicy = []string{"default-src 'none'; connect-src 'self'; frame-ancestors 'none'"}

// asset serves a built file, whose content never changes under its name.
func (s *Server) asset(c echo.Context) error {
	a, ok := s.assets[c.Param("*")]
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h["Cache-Control"] = immutable
	h["Content-Security-Policy"] = assetPolicy
	h["Vary"] = acceptEncoding
	body := a.plain
	if a.gzip != nil && acceptsGzip(c.Request().Header["Accept-Encoding"]) {
		h["Content-Encoding"] = gzipped
		body = a.gzip
	}
	return send(c, http.StatusOK, a.contentType, body)
}
