package report

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// leastFilled is how much of each sheet but the last is used, from its top to the
// last thing on it.
const leastFilled = 0.66

// TestPrint prints reports as a browser does, and looks at each sheet: none is
// half empty but the last, and there are no more than the text needs.
func TestPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium, toImages := tool(t, "chromium"), tool(t, "pdftoppm")
	few := witnessed(t)
	few.Title, few.Organizer = "Summer concert: general sale", "Fans & Friends"
	bad := broken(t)
	for name, c := range map[string]struct {
		audit *Audit
		most  int // sheets
	}{"few windows": {few, 6}, "a failed check": {bad, 6}, "many windows": {many(t), 9}} {
		t.Run(name, func(t *testing.T) {
			sheets := printed(t, chromium, toImages, written(t, c.audit))
			t.Logf("filled: %.2f", sheets)
			if len(sheets) == 0 || len(sheets) > c.most {
				t.Errorf("%d sheets, want 1 to %d", len(sheets), c.most)
			}
			for i, filled := range sheets[:max(len(sheets)-1, 0)] {
				if filled < leastFilled {
					t.Errorf("sheet %d is filled to %.0f %%", i+1, 100*filled)
				}
			}
		})
	}
}

// many is a room with many windows.
func many(t testing.TB) *Audit {
	t.Helper()
	keys := newKeys(t)
	r := roomtest.Open(keys, keys.Policy())
	for window := range 40 {
		start := roomtest.Opens + fairness.Time(window)*60_000
		r.Join(start+1_000, 3)
		r.Settle(start + 60_000)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	return audited(t, publish(t, keys, r.Entries()), verifier.Trust{VKey: keys.VKey})
}

func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// printed returns how far down each sheet is used, from 0 to 1.
func printed(t *testing.T, chromium, toImages, page string) (filled []float64) {
	t.Helper()
	dir := t.TempDir()
	source, pdf := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.pdf")
	if err := os.WriteFile(source, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+pdf, "file://"+source)
	do(t, toImages, "-gray", "-r", "30", pdf, filepath.Join(dir, "sheet"))
	images, err := filepath.Glob(filepath.Join(dir, "sheet-*.pgm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		filled = append(filled, lowest(t, image))
	}
	return filled
}

func do(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

// margin is the empty part of a sheet at its top and at its bottom: 16 mm of a
// Letter sheet, which is what Chromium prints on unless told otherwise.
const margin = 16 / 279.4

// lowest reads a picture in gray (PGM), and returns where its lowest dark dot is
// between the margins.
func lowest(t *testing.T, name string) float64 {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(bytes.NewReader(data))
	var width, height, white int
	if _, err := fmt.Fscanf(in, "P5\n%d %d\n%d\n", &width, &height, &white); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	dots, err := io.ReadAll(in)
	if err != nil || len(dots) != width*height {
		t.Fatalf("%s: %d dots of %d by %d: %v", name, len(dots), width, height, err)
	}
	last := len(dots) - 1
	for last > 0 && dots[last] > 0xe0 {
		last--
	}
	return (float64(last/width)/float64(height) - margin) / (1 - 2*margin)
}

var href = regexp.MustCompile(`href="([^"]*)"`)

// TestPassedOn wants links that open wherever the page is kept, and what a reader
// asks first: which event, whose, when, in which time zone.
func TestPassedOn(t *testing.T) {
	a := witnessed(t)
	a.Title, a.Organizer = "Summer <concert>", "Fans & Friends"
	page := written(t, a)
	links := href.FindAllStringSubmatch(page, -1)
	for _, link := range links {
		if !strings.HasPrefix(link[1], "https://"+origin) {
			t.Errorf("the link %q is not absolute", link[1])
		}
	}
	if len(links) < 10 {
		t.Errorf("only %d links", len(links))
	}
	for _, want := range []string{
		"<dt>Event</dt><dd>Summer &lt;concert&gt;</dd>", "<dt>Organizer</dt><dd>Fans &amp; Friends</dd>", `<dt>Waiting room</dt><dd><a href="https://` + origin + `">`,
		"<dt>When</dt><dd>1 January 2026, 00:00 to 00:02</dd>", "<dt>Times</dt><dd>All in UTC",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
}
