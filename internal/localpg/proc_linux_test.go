package localpg

import (
	"path/filepath"
	"testing"
)

// TestKilledProductTakesPostgresWithIt checks that on Linux postgres ends with a killed product,
// without another start.
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
