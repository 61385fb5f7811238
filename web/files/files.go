// Package files serves the files that do not depend on a room: the built scripts and styles of the pages, icons,
// robots.txt and security.txt.
package files

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/web/page"
	"github.com/proofline/proofline/web/picture"
	"github.com/proofline/proofline/web/reply"
)

// read lists the methods of requests for files.
var read = []string{http.MethodGet, http.MethodHead}

// Path is the path below which the built files are served.
const Path = "/assets/"

// Manifest is the name of the file that maps names to those of built files.
const Manifest = "manifest.json"

// noManifest replaces the manifest if the assets are not built. Pages then have no scripts and
// styles: these links return 404.
const noManifest = `{"page.js": "page.js", "check.js": "check.js", "checker.js": "checker.js", "blind.js": "blind.js", "work.js": "work.js", "solver.js": "solver.js", "page.css": "page.css", "icon.svg": "icon.svg"}`

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

// Load loads the pages and the files. It takes the URIs for reports of vulnerabilities; without these there is no
// security.txt. If the built files are missing or do not match the pages, it logs that and returns pages without
// scripts and styles.
func Load(dist fs.FS, contacts []string, log *slog.Logger) (*page.Pages, *Files, error) {
	pages, all, err := loadBuilt(dist)
	if err == nil {
		return pages, &Files{all, contacts}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		log.Warn("assets are not built: pages have no scripts and styles; run make build")
	} else {
		log.Error("cannot load assets: pages have no scripts and styles; run make build", "err", err)
	}
	pages, err = page.New([]byte(noManifest))
	return pages, &Files{nil, contacts}, err
}

func loadBuilt(dist fs.FS) (*page.Pages, map[string]*asset, error) {
	manifest, err := fs.ReadFile(dist, Manifest)
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

// Files serves the files.
type Files struct {
	assets   map[string]*asset // assets by name
	contacts []string          // URIs for reports of vulnerabilities; empty: no security.txt
}

// Register adds the routes of the files.
func (f *Files) Register(e *echo.Echo) {
	e.Match(read, "/robots.txt", sendRobots)
	e.Match(read, "/.well-known/security.txt", f.securityText)
	for path := range pictures {
		e.Match(read, path, sendPicture)
	}
	e.Match(read, Path+"*", f.asset)
}

// asset serves a built file, whose content never changes under its name.
func (f *Files) asset(c echo.Context) error {
	a, ok := f.assets[c.Param("*")]
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h["Cache-Control"] = reply.Immutable
	h["Content-Security-Policy"] = assetPolicy
	return reply.Send(c, http.StatusOK, a.contentType, reply.Coded(c, a.plain, func() []byte { return a.gzip }))
}

// robots excludes pages that are not for search engines. Rooms are deliberately not listed: their
// pages have a noindex tag, and messengers that respect this file could not preview links to them.
const robots = "User-agent: *\nDisallow: /console\nDisallow: /v1/\n"

// sendRobots serves robots.txt.
func sendRobots(c echo.Context) error {
	c.Response().Header()["Cache-Control"] = reply.Minutes
	return reply.Send(c, http.StatusOK, reply.Text, []byte(robots))
}

// iconCache is the Cache-Control of pictures, whose names do not change.
var iconCache = []string{"public, max-age=86400"}

// pictures are the images with fixed names, for browsers and messengers that expect them there or do
// not support SVG.
var pictures = map[string]struct {
	contentType []string
	draw        func() []byte
}{
	"/favicon.ico":          {[]string{"image/x-icon"}, sync.OnceValue(picture.Tab)},
	"/apple-touch-icon.png": {[]string{"image/png"}, sync.OnceValue(picture.Touch)},
	"/preview.png":          {[]string{"image/png"}, sync.OnceValue(picture.Preview)},
}

// sendPicture serves one of [pictures].
func sendPicture(c echo.Context) error {
	p := pictures[c.Path()]
	c.Response().Header()["Cache-Control"] = iconCache
	return reply.Send(c, http.StatusOK, p.contentType, p.draw())
}

// contactLife is the validity of security.txt; RFC 9116 recommends less than a year.
const contactLife = 90 * 24 * time.Hour

// securityText serves security.txt, the contacts for reports of vulnerabilities
// (https://www.rfc-editor.org/rfc/rfc9116).
func (f *Files) securityText(c echo.Context) error {
	if len(f.contacts) == 0 {
		return echo.ErrNotFound
	}
	var b strings.Builder
	for _, contact := range f.contacts {
		b.WriteString("Contact: " + contact + "\r\n")
	}
	b.WriteString("Expires: " + time.Now().Add(contactLife).UTC().Truncate(time.Hour).Format(time.RFC3339) + "\r\n")
	b.WriteString("Preferred-Languages: en\r\n")
	c.Response().Header()["Cache-Control"] = iconCache
	return reply.Send(c, http.StatusOK, reply.Text, []byte(b.String()))
}
