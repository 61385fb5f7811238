package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// audit runs proofline-verify on published rooms, up to level 3. Each visitor has three entries;
// each window has a VRF proof, a beacon round and three cosignatures to verify.
func (b *bench) audit() error {
	for _, a := range []struct {
		visitors, windows int
		took, memory      *goal
	}{
		{b.visitors, 60, auditFew, auditFewMemory},
		{b.visitors, 10_000, auditMany, auditManyMemory},
		{3 * b.visitors, 60, auditLong, auditLongMemory},
	} {
		keys, err := roomtest.NewKeys("bench.example/r/audit", "bench")
		if err != nil {
			return err
		}
		dir := filepath.Join(b.dir, "transcript")
		say("  writing a room of %d visitors in %d windows", a.visitors, a.windows)
		if err := roomtest.Generate(keys, roomtest.Dir(dir),
			roomtest.Size{Visitors: a.visitors, Windows: a.windows}); err != nil {
			return err
		}
		for range b.runs {
			took, memory, err := b.verify(keys, dir)
			if err != nil {
				return err
			}
			b.add(reading{goal: a.took, value: took.Seconds(), size: a.visitors},
				reading{goal: a.memory, value: memory / 1e6, size: a.visitors})
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// verify runs one audit, and returns its duration and its peak memory in bytes.
func (b *bench) verify(keys *roomtest.Keys, dir string) (took time.Duration, memory float64, err error) {
	args := []string{"audit", dir, "--json", "--no-keep", "--beacon", fmt.Sprintf("%x", keys.Chain.Chain().Hash())}
	for _, w := range keys.Witnesses {
		args = append(args, "--witness", w.String())
	}
	cmd := exec.CommandContext(b.ctx, filepath.Join(b.head.bin, "proofline-verify"), args...) //nolint:gosec // our own
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
			// Not from rusage: its maximum includes the memory of this process, which starts the program.
			if now, err := memoryOf(cmd.Process.Pid, "VmHWM"); err == nil {
				memory = max(memory, now)
			}
		}
	}
	took = time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	var report verifier.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return 0, 0, err
	}
	if report.Level != verifier.LevelWitnessed {
		return 0, 0, fmt.Errorf("the audit reaches level %d", report.Level)
	}
	return took, memory, nil
}
