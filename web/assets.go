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

// noManifest is in place of the manifest when there are no built files. Pages
// do without scripts and styles then: these links lead nowhere.
const noManifest = `{"page.js": "page.js", "checker.js": "checker.js", "page.css": "page.css", "icon.svg": "icon.svg"}`

// assetTypes are the files that are served, by the end of their name.
var assetTypes = map[string][]string{
	".js":    {"text/javascript; charset=utf-8"},
	".css":   {"text/css; charset=utf-8"},
	".svg":   {"image/svg+xml"},
	".png":   {"image/png"},
	".woff2": {"font/woff2"},
}

// asset is a built file. Its name holds a hash of its content.
type asset struct {
	contentType []string
	plain       []byte
	gzip        []byte // nil when it is no shorter
}

// loadAssets reads the built files into memory, and compresses them once.
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

// shorter compresses b as well as it goes, nil if that does not make it shorter.
func shorter(b []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // a valid level
	_, _ = w.Write(b)                                       // into memory
	_ = w.Close()
	if out.Len() >= len(b) {
		return nil
	}
	return out.Bytes()
}

// loadPages prepares the pages and what they refer to. Without built files,
// and with some that do not go with the pages, they work without scripts and
// styles, and the log says so.
func loadPages(dist fs.FS, log *slog.Logger) (*page.Pages, map[string]*asset, error) {
	pages, all, err := loadBuilt(dist)
	if err == nil {
		return pages, all, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		log.Warn("assets are not built: pages have no scripts and styles; run make build")
	} else {
		log.Error("assets cannot be used: pages have no scripts and styles; run make build", "err", err)
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

// assetPolicy lets the checker read the log: a worker keeps to the policy that
// its own script came with (https://www.w3.org/TR/CSP3/#initialize-global-object-csp).
var assetPolicy = []string{"default-src 'none'; connect-src 'self'; frame-ancestors 'none'"}

// asset answers with a built file, which never changes under its name.
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
