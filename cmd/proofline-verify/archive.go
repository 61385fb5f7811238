package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/report"
	"github.com/proofline/proofline/verifier/source"
)

// Files of an archive. The directory transcript contains the published files unchanged.
const (
	archiveReadme     = "README.txt"
	archiveTranscript = "transcript/"
	archiveKept       = "earlier-checkpoint.txt"
)

// maxRatio is the compression ratio from which a file is stored uncompressed: readers refuse
// archives that unpack to much more than their size as zip bombs.
const maxRatio = 20

type archiveFlags struct{ auditFlags }

func archiveCommand(t *terminal) *cobra.Command {
	var f archiveFlags
	c := &cobra.Command{
		Use:   "dossier URL|DIR OUT.zip",
		Short: "Pack transcript, key, reports and instructions into one archive",
		Long: `Pack everything needed to check a room years later into one archive: the
transcript as it was published, its key, its checkpoint, the report of a new
audit (as text, JSON and an HTML page), and instructions.

"proofline-verify audit OUT.zip" audits the archive offline, without unpacking
it. An existing file is never replaced.

Exit code 0: verified and packed; 1: packed, but a check failed; 2: wrong usage;
3: could not be read or written.`,
		Example: `  proofline-verify dossier https://example.com/r/sale sale.zip --vkey @sale.vkey
  proofline-verify audit sale.zip --vkey @sale.vkey`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), t, args[0], args[1]) },
	}
	f.define(c)
	return c
}

func (f *archiveFlags) run(ctx context.Context, t *terminal, arg, out string) error {
	if !strings.EqualFold(filepath.Ext(out), ".zip") {
		return usage(fmt.Errorf("%q does not end in .zip", out), "give the archive a name such as sale.zip")
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		return usage(fmt.Errorf("%s already exists", out), "it may be evidence: give another name")
	}
	src, trust, keeper, err := f.prepare(ctx, t, arg)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "proofline-dossier-")
	if err != nil {
		return &exit{exitUnreadable, err, "cannot create a temporary directory: set TMPDIR to a writable one"}
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	bar := t.bar("tiles")
	_, err = source.Store(ctx, src, dir, bar.show)
	bar.clear()
	if err != nil && !errors.Is(err, source.ErrMismatch) { // the audit reports mismatches
		return unreadable(err)
	}
	stored, err := source.Dir(dir)
	if err != nil {
		return unreadable(err)
	}
	const withStats = true
	done, err := f.audited(ctx, t, arg, &pinned{stored, src.checkpoint}, trust, withStats)
	if err != nil {
		return unreadable(err)
	}
	f.about.apply(ctx, src.Source, done)
	done.Command = command(filepath.Base(out), trust)
	sum, err := writeArchive(out, dir, done)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("write %s: %w", out, err), "give another name, or free disk space"}
	}
	if err := t.printArchive(done, out, sum); err != nil {
		return unreadable(err)
	}
	if !done.Report.OK {
		return &exit{code: exitFailed}
	}
	if !unconfirmed(arg, done) {
		keeper.save(src.checkpoint)
	}
	return nil
}

func (t *terminal) printArchive(a *report.Audit, out string, sum []byte) error {
	head, _, _ := strings.Cut(verdict(a.Report, t.colour()), "\n")
	_, err := fmt.Fprintf(t.out, "%s\n  %s of %s packed into %s\n  SHA-256 %x\n  keep a note of it elsewhere, and check the archive with:\n    %s\n",
		head, numeral.Count(a.Report.Entries, "entry", "entries"), printable(a.Report.Origin), out, sum, command(out,
			a.Trust))
	return err
}

func writeArchive(out, transcript string, a *report.Audit) (sum []byte, err error) {
	file, err := os.CreateTemp(filepath.Dir(out), ".incomplete-*")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	hash := sha256.New()
	p := &packer{zip: zip.NewWriter(io.MultiWriter(file, hash)), made: a.Time.UTC().Truncate(2 * time.Second)}
	// Most content is random ids, which no level compresses better.
	if p.flate, err = flate.NewWriter(&p.packed, flate.BestSpeed); err != nil {
		return nil, err
	}
	if err := p.pack(transcript, a); err != nil {
		return nil, err
	}
	if err := errors.Join(p.zip.Close(), file.Chmod(0o644), file.Sync()); err != nil {
		return nil, err
	}
	switch err := os.Link(file.Name(), out); { // fails if out exists
	case errors.Is(err, fs.ErrExist):
		return nil, err
	case err != nil: // not all file systems support links
		return hash.Sum(nil), errors.Join(file.Close(), os.Rename(file.Name(), out))
	}
	return hash.Sum(nil), errors.Join(file.Close(), os.Remove(file.Name()))
}

// packer writes the files of an archive.
type packer struct {
	zip    *zip.Writer
	made   time.Time
	flate  *flate.Writer
	packed bytes.Buffer
}

func (p *packer) pack(transcript string, a *report.Audit) error {
	var text, data, page bytes.Buffer
	plain := &terminal{out: &text, env: func(string) string { return "" },
		attached: func(io.Writer) bool { return false }}
	err := errors.Join(plain.printReport(a.Report, a.Findings), writeJSON(&data, jsonOf(a)), report.Write(&page, a))
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{
		{archiveReadme, instructions(a)}, {"report.txt", text.Bytes()}, {"report.json",
			data.Bytes()}, {"report.html", page.Bytes()},
		{archiveKept, a.Trust.Kept},
	} {
		if f.content == nil {
			continue
		}
		if err := p.add(f.name, f.content); err != nil {
			return err
		}
	}
	return filepath.WalkDir(transcript, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(transcript, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name) //nolint:gosec // in our temporary directory
		if err != nil {
			return err
		}
		return p.add(archiveTranscript+filepath.ToSlash(below), content)
	})
}

// add adds a file. It compresses the file if that makes it smaller, but by less than maxRatio.
func (p *packer) add(name string, content []byte) error {
	p.packed.Reset()
	p.flate.Reset(&p.packed)
	if _, err := p.flate.Write(content); err != nil {
		return err
	}
	if err := p.flate.Close(); err != nil {
		return err
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: p.made, CRC32: crc32.ChecksumIEEE(content),
		UncompressedSize64: uint64(len(content))}
	body := p.packed.Bytes()
	if len(body) >= len(content) || len(body) < len(content)/maxRatio {
		h.Method, body = zip.Store, content
	}
	h.CompressedSize64 = uint64(len(body))
	f, err := p.zip.CreateRaw(h)
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	return err
}

// instructions returns the README for readers who have only the archive.
func instructions(a *report.Audit) []byte {
	var b strings.Builder
	head, _, _ := strings.Cut(verdict(a.Report, func(_ int, s string) string { return s }), "\n")
	fmt.Fprintf(&b, `Dossier of a waiting room

  room     %s
  entries  %s
  audited  %s
  with     %s
  result   %s

Contents of this archive

  report.html   the report of that audit: open it in a browser
  report.txt    the same for a terminal
  report.json   the same for programs
  transcript/   the whole public record of the room, as it was published:
                checkpoint (signed), tile/ (entries and hashes), vkey (the key
                that the record names)
`, printable(a.Report.Origin), numeral.Group(a.Report.Entries), a.Time.UTC().Format("2006-01-02 15:04:05 UTC"), a.Program, head)
	if a.Trust.Kept != nil {
		fmt.Fprintf(&b, "  %s\n                the checkpoint of an earlier audit, with which this one was compared\n",
			archiveKept)
	}
	fmt.Fprintf(&b, `
Check it offline

  Do not rely on the reports: they could have been forged. Do not unpack the
  archive; with the program proofline-verify
  (https://github.com/proofline/proofline), run

    %s

  It recomputes everything from transcript/ and must give the same result. Get
  the keys of the room and of its witnesses from a source that you trust, not
  from this archive.

Check it with other programs

  transcript/ is a transparency log: https://c2sp.org/tlog-tiles for the files,
  https://c2sp.org/tlog-checkpoint and https://c2sp.org/signed-note for the
  checkpoint, RFC 6962 for the tree. Any tool that reads those can check that the
  entries are those that were signed. Entries are lines of text; the rules by
  which places follow from them are in fairness/RULES.md of the program's source.

  The draws use RFC 9381 (ECVRF-P256-SHA256-SSWU), SHA-256 and SHAKE256, and
  drand (https://docs.drand.love) if the first entry names a beacon.
`, a.Command)
	return []byte(b.String())
}
