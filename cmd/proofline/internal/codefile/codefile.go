// Package codefile writes codes for visitors to files that did not exist before: a table, and a page to print and cut.
package codefile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/internal/codesheet"
	"github.com/proofline/proofline/internal/listfile"
)

// Files are the files that a command writes.
type Files struct {
	Out, Sheet string
	// On has what is on each slip of the sheet besides its code.
	On codesheet.Sheet
}

// Add adds the flags.
func (f *Files) Add(flags *pflag.FlagSet) {
	flags.StringVar(&f.Out, "out", "", "write the codes to this CSV `FILE`, which must not exist (required)")
	flags.StringVar(&f.Sheet, "sheet", "", "write a page to print and cut to this HTML `FILE`, which must not exist")
	flags.StringVar(&f.On.Title, "title", "Your code", "`TEXT` above each code on the sheet")
}

const leftAlone = "choose another name: existing files are left alone"

// Check fails if a file exists, so that no codes are made that cannot be written.
func (f *Files) Check() error {
	for _, path := range []string{f.Out, f.Sheet} {
		if path == "" {
			continue
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return cli.Failed(errors.Join(err, fmt.Errorf("%s: %w", path, fs.ErrExist)), leftAlone)
		}
	}
	return nil
}

// Write writes rows with codes to the table, and the codes to the sheet, if there is to be one.
func (f *Files) Write(rows [][]string, codes []string) error {
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	if err := writeNew(f.Out, table.Bytes()); err != nil {
		return err
	}
	if f.Sheet == "" {
		return nil
	}
	f.On.Codes = codes
	page, err := f.On.Page()
	if err != nil {
		return err
	}
	return writeNew(f.Sheet, page)
}

// maxCodes is the maximum number of codes read at once.
const maxCodes = 100_000

// Read reads a file of codes: one a line, or the column called code of a CSV file.
func Read(path, text string) ([]string, error) {
	codes, err := listfile.Read(text, "code", maxCodes, func(cell string) (string, error) { return cell, nil })
	if err != nil {
		return nil, cli.Failed(fmt.Errorf("%s: %w", path, err), "nothing was done")
	}
	return codes, nil
}

// Voided describes what became of codes that were voided, or with check would become.
func Voided(voided, used, before, unknown int, check bool) string {
	text := fmt.Sprintf("%d codes are void now", voided)
	if check {
		text = fmt.Sprintf("%d codes would be void", voided)
	}
	return fmt.Sprintf("%s; %d were used already, %d were void before, %d are unknown or repeated\n", text, used, before,
		unknown)
}

// writeNew writes a file that only its owner can read, and that does not exist.
func writeNew(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return cli.Failed(err, leftAlone)
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}
