package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"k8s.io/klog/v2"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/internal/roomtest"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // fsck's progress messages
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// sizes of the logs that are read: no full tile, one, and two and three levels
// of tiles, each with its neighbours.
var sizes = []int{1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 70_000}

const origin = "sale.example.com/r/interop"

// published is a log as a reader finds it: its address, and the key to trust.
type published struct {
	prefix *url.URL // http or file, with a slash at the end
	key    note.Verifier
	head   []byte // an earlier checkpoint, to read the log at its size; nil for the current one
}

// client fetches published files, over HTTP or from a directory.
var client = &http.Client{Transport: func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	return t
}()}

// get reads one resource of the log. It returns fs.ErrNotExist if the resource does not exist.
func (p published) get(ctx context.Context, path string) ([]byte, error) {
	if path == "checkpoint" && p.head != nil {
		return p.head, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.prefix.JoinPath(path).String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
		return io.ReadAll(resp.Body)
	case http.StatusNotFound:
		return nil, fmt.Errorf("get %s: %w", path, fs.ErrNotExist)
	default:
		return nil, fmt.Errorf("get %s: %s", path, resp.Status)
	}
}

// script is a whole room of at least 70,000 entries: arrivals, freezes, draws,
// places, calls and admissions. Its first n entries are a log of size n.
var script = sync.OnceValues(func() ([][]byte, error) {
	keys, err := roomtest.NewKeys(origin, "operator")
	if err != nil {
		return nil, err
	}
	files := roomtest.Files{}
	if err := roomtest.Generate(keys, files, roomtest.Size{Visitors: 23_400, Windows: 3}); err != nil {
		return nil, err
	}
	var entries [][]byte
	for n := uint64(0); ; n++ {
		bundle, ok := files[audit.Tile{Level: -1, Index: n, Width: audit.TileWidth}.Path()]
		if !ok {
			return entries, nil // without the last, partial bundle
		}
		err := audit.SplitBundle(bundle, audit.TileWidth, func(entry []byte) error {
			entries = append(entries, entry)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
})

// scripted returns the first n entries of the script.
func scripted(t testing.TB, n int) [][]byte {
	t.Helper()
	entries, err := script()
	if err == nil && len(entries) < n {
		err = errors.New("the script is too short")
	}
	if err != nil {
		t.Fatal(err)
	}
	return entries[:n]
}

// publish builds the files of a log, signed by the operator.
func publish(t testing.TB, entries [][]byte) roomtest.Files {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, "operator")
	if err != nil {
		t.Fatal(err)
	}
	files, err := roomtest.Publish(keys, entries)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// write writes the files below a directory.
func write(t testing.TB, files roomtest.Files, dir string) {
	t.Helper()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
}

// inDirectory returns the log read from a directory.
func inDirectory(t testing.TB, dir string) published {
	t.Helper()
	return published{prefix: &url.URL{Scheme: "file", Path: dir + "/"}, key: operator(t)}
}

// overHTTP returns the log read from a plain file server.
func overHTTP(t testing.TB, dir string) published {
	t.Helper()
	const path = "/r/interop/"
	server := httptest.NewServer(http.StripPrefix(path, http.FileServer(http.Dir(dir))))
	t.Cleanup(server.Close)
	prefix, err := url.Parse(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	return published{prefix: prefix, key: operator(t)}
}

// operator is the key to trust, parsed from its text like a stranger would.
func operator(t testing.TB) note.Verifier {
	t.Helper()
	keys, err := roomtest.NewKeys(origin, "operator")
	if err != nil {
		t.Fatal(err)
	}
	return verifier(t, keys.VKey)
}

func verifier(t testing.TB, vkey string) note.Verifier {
	t.Helper()
	v, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
