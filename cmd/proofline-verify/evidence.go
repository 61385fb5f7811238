package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/verifier/evidence"
	"github.com/proofline/proofline/verifier/ticket"
)

// evidenceTitles are the headlines of the kinds of evidence.
var evidenceTitles = map[evidence.Kind]string{
	evidence.Fork:        "TWO HISTORIES: the operator signed two that contradict each other",
	evidence.Receipt:     "AN ARRIVAL IS MISSING: the operator signed it, and later a history without it",
	evidence.Shrink:      "The room shows fewer entries than before",
	evidence.Unproven:    "The room does not prove that it continues its earlier history",
	evidence.Violation:   "An entry breaks a rule",
	evidence.LateFreeze:  "A window is over, but was not frozen in time",
	evidence.MissingDraw: "A window was not drawn in time",
}

type evidenceFlags struct {
	vkey string
	json bool
}

func evidenceCommand(t *terminal) *cobra.Command {
	var f evidenceFlags
	c := &cobra.Command{
		Use:   "evidence FILE",
		Short: "Check a file of evidence offline",
		Long: `Check a file of evidence offline: what it proves, what its author merely claims,
and what it does not show. FILE - is standard input.

Exit code 1: it proves that the operator did wrong; 0: it is an observation,
which proves nothing by itself; 3: it cannot be read, is about another key, or
is wrong.`,
		Example: `  proofline-verify evidence evidence-fork-4711.json --vkey @sale.vkey`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return f.run(t, c.InOrStdin(), args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in the file)")
	c.Flags().BoolVar(&f.json, "json", false, "print the finding as JSON")
	return c
}

func (f *evidenceFlags) run(t *terminal, stdin io.Reader, name string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	e, err := readEvidence(stdin, name)
	if err != nil {
		return notEvidence(name, err)
	}
	finding, err := e.Check(vkey)
	if err != nil {
		hint := "it proves nothing; ask its author"
		if errors.Is(err, evidence.ErrKey) {
			hint = "it is not about the room of the given key"
		}
		return &exit{exitUnreadable, err, hint}
	}
	if f.json {
		err = writeJSON(t.out, finding)
	} else {
		err = t.printFinding(finding)
	}
	if err != nil {
		return unreadable(err)
	}
	if finding.Proof {
		return &exit{code: exitFailed}
	}
	return nil
}

func readEvidence(stdin io.Reader, name string) (*evidence.Evidence, error) {
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // named by the user
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // only read
		stdin = file
	}
	content, err := io.ReadAll(io.LimitReader(stdin, evidence.MaxSize+1))
	if err != nil {
		return nil, err
	}
	if _, err := ticket.Parse(content); err == nil {
		return nil, errSavedProof
	}
	return evidence.Parse(content)
}

// errSavedProof is returned for a saved proof, which another command checks.
var errSavedProof = errors.New("a saved proof, not evidence")

// notEvidence returns the error and hint for a file that is not evidence.
func notEvidence(name string, err error) *exit {
	switch {
	case errors.Is(err, errSavedProof):
		return &exit{exitUnreadable, fmt.Errorf("%s is %w", name, err),
			"check it with: proofline-verify ticket " + quoted(name)}
	case errors.As(err, new(*fs.PathError)):
		return &exit{exitUnreadable, err,
			"give the path of a file written by watch or compare, such as ./evidence-fork-4711.json"}
	}
	return &exit{exitUnreadable, fmt.Errorf("read %s: %w", name, err),
		"give the file unchanged: even changes by an editor make it invalid"}
}

// printFinding prints a finding as text.
func (t *terminal) printFinding(f *evidence.Finding) error {
	var b strings.Builder
	colour := t.colour()
	head := colour(grey, "– OBSERVATION: "+evidenceTitles[f.Kind])
	if f.Proof {
		head = colour(red, "✗ PROOF: "+evidenceTitles[f.Kind])
	}
	fmt.Fprintf(&b, "%s\n\n  room     %s\n  key\n    %s\n\nShown\n", head, printable(f.Origin), printable(f.VKey))
	for _, text := range f.Shown {
		printItem(&b, "   - ", printable(text), func(s string) string { return s })
	}
	if len(f.NotShown) > 0 {
		b.WriteString("\nNot shown\n")
	}
	for _, text := range f.NotShown {
		printItem(&b, "   - ", printable(text), func(s string) string { return s })
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}
