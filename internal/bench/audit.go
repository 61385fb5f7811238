package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/verifier"
)

// audited is a published room to audit, with its rows.
type audited struct {
	size              roomtest.Size
	took, cpu, memory *goal // cpu: nil for no row
}

// audit runs proofline-verify on published rooms, up to level 3. Each visitor has three entries;
// each window has a VRF proof, a beacon round and three cosignatures to verify.
func (b *bench) audit() error {
	return b.auditEach(
		audited{roomtest.Size{Visitors: b.visitors, Windows: 60}, auditFew, nil, auditFewMemory},
		audited{roomtest.Size{Visitors: b.visitors, Windows: 10_000}, auditMany, nil, auditManyMemory},
		audited{roomtest.Size{Visitors: 3 * b.visitors, Windows: 60}, auditLong, nil, auditLongMemory},
	)
}

// auditSigned runs proofline-verify on a room whose visitors each show an issuer's signature.
func (b *bench) auditSigned() error {
	return b.auditEach(audited{
		roomtest.Size{Visitors: b.visitors, Windows: 60, Issuer: issuertest.Signed("club", 0)},
		auditWith, auditWithCPU, auditWithMemory,
	})
}

func (b *bench) auditEach(rooms ...audited) error {
	for _, a := range rooms {
		keys, err := roomtest.NewKeys("bench.example/r/audit", "bench")
		if err != nil {
			return err
		}
		dir := filepath.Join(b.dir, "transcript")
		say("  writing a room of %d visitors in %d windows", a.size.Visitors, a.size.Windows)
		if err := roomtest.Generate(keys, roomtest.Dir(dir), a.size); err != nil {
			return err
		}
		for range b.runs {
			if err := b.verify(keys, dir, a); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// verify runs one audit, and adds its duration, its CPU time and its peak memory.
func (b *bench) verify(keys *roomtest.Keys, dir string, a audited) error {
	args := []string{"audit", dir, "--json", "--no-keep", "--beacon", fmt.Sprintf("%x", keys.Chain.Chain().Hash())}
	for _, w := range keys.Witnesses {
		args = append(args, "--witness", w.String())
	}
	cmd := exec.CommandContext(b.ctx, filepath.Join(b.head.bin, "proofline-verify"), args...) //nolint:gosec // our own
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	var memory float64
	var err error
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
	took := time.Since(began)
	if err != nil {
		return err
	}
	var report verifier.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return err
	}
	if report.Level != verifier.LevelWitnessed {
		return fmt.Errorf("the audit reaches level %d", report.Level)
	}
	readings := []reading{{goal: a.took, value: took.Seconds(), size: a.size.Visitors}}
	if a.cpu != nil {
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		readings = append(readings, reading{goal: a.cpu, value: cpu.Seconds(), size: a.size.Visitors})
	}
	b.add(append(readings, reading{goal: a.memory, value: memory / 1e6, size: a.size.Visitors})...)
	return nil
}
