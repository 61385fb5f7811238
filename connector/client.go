package connector

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the script
	"encoding/hex"
	"net/http"
	"strings"
	"time"
)

// OwnPath is what paths begin with that connectors answer themselves, whatever
// the rules say, when it is written like this. The site gets no such request.
const OwnPath = "/.proofline/"

// ScriptPath is where a page of the site has the script that leads it to the
// room when what it fetches has to wait: see client/README.md.
const ScriptPath = OwnPath + "wait.js"

//go:embed client/wait.js
var script []byte

var scriptTag = func() string {
	sum := sha256.Sum256(script)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}()

// isOwn tells whether a request is for the connector itself.
func isOwn(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, OwnPath) && strings.HasPrefix(r.URL.EscapedPath(), OwnPath)
}

// serveOwn answers what is for the connector itself. What it has not, nobody
// has: the site might read another path out of it.
func serveOwn(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	if r.URL.Path != ScriptPath {
		h.Set("Cache-Control", "no-store")
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600, stale-while-revalidate=86400")
	h.Set("ETag", scriptTag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(script))
}
