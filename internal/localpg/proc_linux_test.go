package localpg

import (
	"path/filepath"
	"testing"
)

// On Linux a killed product takes postgres with it, so that nothing is left
// running even if it is never started again.
func TestKilledProductTakesPostgresWithIt(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	cmd, _, _ := product(t, dir, nil)
	c := cluster{dir: filepath.Join(dir, "postgres")}
	if len(c.processes()) == 0 {
		t.Fatal("no process found while the product runs")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	eventually(t, "postgres is gone", func() bool { return len(c.processes()) == 0 })
}
