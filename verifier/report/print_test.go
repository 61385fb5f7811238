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
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/internal/zone"
	"github.com/proofline/proofline/verifier"
)

// leastFilled is how much of each sheet but the last is used, from its top to its last mark.
const leastFilled = 0.66

// TestPrint prints reports with a browser, and measures each sheet: only the last may be half empty, and
// there are no more sheets than the text needs.
func TestPrint(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	chromium, toImages := tool(t, "chromium"), tool(t, "pdftoppm")
	few := witnessed(t)
	few.Title, few.Organizer, few.Zone = "Summer concert: general sale", "Fans & Friends", vienna(t)
	bad := broken(t)
	for name, c := range map[string]struct {
		audit *Audit
		most  int // sheets
	}{"few windows": {few, 6}, "a failed check": {bad, 6}, "many windows": {many(t), 9}} {
		t.Run(name, func(t *testing.T) {
			for _, paper := range papers {
				sheets := printed(t, chromium, toImages, written(t, c.audit), paper)
				t.Logf("%s: filled %.2f", paper.name, sheets)
				if len(sheets) == 0 || len(sheets) > c.most {
					t.Errorf("%s: %d sheets, want 1 to %d", paper.name, len(sheets), c.most)
				}
				for i, filled := range sheets[:max(len(sheets)-1, 0)] {
					if filled < leastFilled {
						t.Errorf("%s: sheet %d is filled to %.0f %%", paper.name, i+1, 100*filled)
					}
				}
			}
		})
	}
}

// paper is a paper size with its height in millimetres.
type paper struct {
	name   string
	height float64
}

var papers = []paper{{"A4", 297}, {"letter", 279.4}}

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

// printed returns how far down each sheet is used, from 0 to 1. Every link on the sheets must work wherever
// they are stored.
func printed(t *testing.T, chromium, toImages, page string, on paper) (filled []float64) {
	t.Helper()
	dir := t.TempDir()
	source, pdf := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.pdf")
	if err := os.WriteFile(source, []byte(strings.Replace(page, "@page {", "@page { size: "+on.name+";", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--no-pdf-header-footer", "--print-to-pdf="+pdf, "file://"+source)
	absolute(t, pdf)
	do(t, toImages, "-gray", "-r", "30", pdf, filepath.Join(dir, "sheet"))
	images, err := filepath.Glob(filepath.Join(dir, "sheet-*.pgm"))
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		filled = append(filled, lowest(t, image, on))
	}
	return filled
}

func do(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

var annotation = regexp.MustCompile(`/URI\s*\(([^)]*)\)`)

// absolute checks that a PDF has links, and that each has a host.
func absolute(t *testing.T, pdf string) {
	t.Helper()
	content, err := os.ReadFile(pdf)
	if err != nil {
		t.Fatal(err)
	}
	links := annotation.FindAllSubmatch(content, -1)
	if len(links) < 5 {
		t.Errorf("the PDF has %d links", len(links))
	}
	for _, link := range links {
		if !bytes.HasPrefix(link[1], []byte("https://"+origin)) {
			t.Errorf("the PDF links to %q", link[1])
		}
	}
}

// margin is the empty part of a sheet at its top and at its bottom, in millimetres.
const margin = 16

// lowest reads a grayscale picture (PGM), and returns the position of its lowest dark pixel between the
// margins.
func lowest(t *testing.T, name string, on paper) float64 {
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
	edge := margin / on.height
	return (float64(last/width)/float64(height) - edge) / (1 - 2*edge)
}

var href = regexp.MustCompile(`href="([^"]*)"`)

// vienna is the event's time zone, an hour ahead of UTC in January.
func vienna(t testing.TB) *time.Location {
	t.Helper()
	found, err := zone.Parse("Europe/Vienna")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestLocalTimes checks that every time on the page is in the event's time zone, with UTC next to it.
func TestLocalTimes(t *testing.T) {
	keys := newKeys(t)
	r := roomtest.Open(keys, keys.Policy())
	at := func(seconds int) fairness.Time { return roomtest.Opens + fairness.Time(seconds)*1000 }
	r.Append(&fairness.Amend{Time: at(1), Change: fairness.ChangeOpen})
	r.Append(&fairness.Amend{Time: at(11), Change: fairness.ChangeShut})
	r.Join(at(20), 3)
	r.Settle(at(60))
	r.Append(&fairness.Amend{Time: at(82_900), Change: fairness.ChangePause}) // before midnight in UTC, after it in Vienna
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	a := audited(t, publish(t, keys, r.Entries()), verifier.Trust{VKey: keys.VKey})
	a.Zone = vienna(t)
	page := written(t, a)
	for _, want := range []string{
		"<dt>When</dt><dd>1 January 2026, 01:00 to 2 January 2026, 00:01</dd>", "<dt>In UTC</dt><dd>1 January 2026, 00:00 to 23:01</dd>",
		"<dt>Times</dt><dd>In the time zone of the event, Europe/Vienna, with UTC next to them</dd>",
		"<td>2026-01-02 00:01:40 CET (2026-01-01 23:01:40 UTC)</td>", "Open from 2026-01-01 01:00:01 CET (00:00:01 UTC), for 10 s.",
		`<td data-name="from">2026-01-01 01:00:00 CET (00:00:00 UTC)</td>`, " CET</span></p>",
		"<dt>Made</dt><dd>2026-01-02 04:04:05 CET (03:04:05 UTC)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	if lone := regexp.MustCompile(`.{0,30}\d\d:\d\d:\d\d(\.\d+)? UTC[^)]`).FindString(page); lone != "" {
		t.Errorf("only in UTC: %q", lone)
	}
}

// TestPassedOn checks that links work wherever the page is stored, and that the page begins with the event,
// the organizer, the date and the time zone.
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
