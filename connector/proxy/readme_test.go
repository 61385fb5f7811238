package proxy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/doctest"
)

// TestUnits verifies the README's units with systemd, if it is installed.
func TestUnits(t *testing.T) {
	t.Parallel()
	blocks := doctest.Blocks(t, "README.md", "ini")
	if len(blocks) != 2 {
		t.Fatalf("%d units in the README", len(blocks))
	}
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	for i, name := range []string{"proofline-proxy.service", "proofline-auth.service"} {
		unit := blocks[i]
		if !strings.Contains(unit, "ExecStart=/usr/local/bin/proofline proxy ") {
			t.Errorf("%s starts something else", name)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(strings.Replace(unit, "/usr/local/bin/proofline", "/bin/true", 1)),
			0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), program, "verify", "--man=no", file).CombinedOutput()
		if err != nil || strings.Contains(string(said), name) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
