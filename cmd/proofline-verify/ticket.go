package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier/numeral"
	"github.com/proofline/proofline/verifier/ticket"
)

type ticketFlags struct {
	vkey  string
	trust trustFlags
	json  bool
}

func ticketCommand(t *terminal) *cobra.Command {
	var f ticketFlags
	c := &cobra.Command{
		Use:   "ticket FILE",
		Short: "Check the place of one visitor from a saved proof",
		Long: `Check the place of one visitor from the file that "Save my proof" on the room's
page made: offline, without the room, and independently of the page's code. It
prints the same four lines as the page, and what they do not prove. FILE - is
standard input.

The draw line needs a public beacon that the operator does not run: drand's
quicknet, or one that you name with --beacon. All witnesses of the room count;
with --witness only those that you name.

Exit code 0: no line is wrong, though some may not be proven yet; 1: a line is
wrong; 3: the file cannot be read, or is not a saved proof.`,
		Example: `  proofline-verify ticket proofline-sale-cda3f665.json
  proofline-verify ticket proofline-sale-cda3f665.json --vkey @sale.vkey --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(t, c.InOrStdin(), args[0]) },
	}
	c.Flags().StringVar(&f.vkey, "vkey", "",
		"`KEY` of the log: the key itself, or @FILE (default: the one in the file)")
	f.trust.define(c)
	c.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
	return c
}

func (f *ticketFlags) run(t *terminal, stdin io.Reader, name string) error {
	vkey, err := readVKey(f.vkey)
	if err != nil {
		return err
	}
	others, err := f.trust.parse()
	if err != nil {
		return err
	}
	bundle, err := readProof(stdin, name)
	if err != nil {
		return err
	}
	result := checkProof(bundle, ticket.Trust{VKey: vkey, Beacons: others.Beacons, Witnesses: others.Witnesses})
	if f.json {
		e := json.NewEncoder(t.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(result)
	} else {
		err = t.printPlace(result)
	}
	if err != nil {
		return unreadable(err)
	}
	if result.Status == ticket.Red {
		return &exit{code: exitFailed}
	}
	return nil
}

// readProof reads a saved proof from a file, or from standard input for "-".
func readProof(stdin io.Reader, name string) (*ticket.Bundle, error) {
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, &exit{exitUnreadable, err, `give the file that "Save my proof" made, or - for standard input`}
		}
		defer file.Close()
		stdin = file
	}
	content, err := io.ReadAll(io.LimitReader(stdin, ticket.MaxSize+1))
	if err != nil {
		return nil, &exit{exitUnreadable, err, `give the file that "Save my proof" made, or - for standard input`}
	}
	if _, err := audit.ParseProof(content); err == nil {
		return nil, &exit{exitUnreadable, fmt.Errorf("read %s: a receipt, which only proves the arrival", name),
			`compare it with the room: proofline-verify compare FILE URL; or save the whole proof on the room's page, "Check my place"`}
	}
	bundle, err := ticket.Parse(content)
	if err != nil {
		return nil, &exit{exitUnreadable, fmt.Errorf("read %s: %w", name, err),
			"save the proof again and pass it on unchanged: even changes by an editor make it invalid"}
	}
	return bundle, nil
}

// placeResult is the JSON output about a saved proof.
type placeResult struct {
	Origin    string        `json:"origin"`
	Ticket    string        `json:"ticket"`
	Key       string        `json:"vkey,omitempty"` // key used for the check
	Status    ticket.Status `json:"status"`         // status of the worst line
	Lines     []placeLine   `json:"lines"`
	NotProven []string      `json:"not_proven"`
}

type placeLine struct {
	ticket.Line
	Title string `json:"title"`
	Text  string `json:"text"`
}

func checkProof(b *ticket.Bundle, trust ticket.Trust) *placeResult {
	r := &placeResult{Origin: string(b.Origin), Ticket: string(b.Ticket), Key: trust.VKey}
	if trust.VKey == "" && b.VKey != nil {
		r.Key = string(*b.VKey)
	}
	lines := ticket.Check(b, trust)
	r.Status = ticket.Worst(lines[:])
	for _, line := range lines {
		text := spell(placeWords[line.ID][line.Reason], line.Facts)
		if line.Reason == ticket.Malformed {
			text += fmt.Sprintf(" %q.", printable(string(*b.Malformed)))
		}
		if _, counted := line.Facts["known"]; counted {
			text += spell(" You know {known} of {cosigned} who signed.", line.Facts)
		}
		r.Lines = append(r.Lines, placeLine{line, placeTitles[line.ID], text})
	}
	r.NotProven = notProven(b, r)
	return r
}

var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

// spell inserts facts, formatted for people, into a text.
func spell(text string, facts ticket.Facts) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		fact := facts[name[1:len(name)-1]]
		n, err := strconv.ParseUint(fact, 10, 63)
		switch {
		case name == "{cosigners}":
			return printable(strings.ReplaceAll(fact, " ", ", "))
		case err != nil:
			return "?" // a seed or a missing fact, which no text uses
		case name == "{round}":
			return fact
		case name == "{closed}", name == "{appears}":
			return time.UnixMilli(int64(n)).UTC().Format("2006-01-02 15:04:05 UTC")
		}
		return numeral.Group(n)
	})
}

// printPlace prints a result as text.
func (t *terminal) printPlace(r *placeResult) error {
	codes := map[ticket.Status]int{ticket.Green: green, ticket.Neutral: grey, ticket.Amber: yellow, ticket.Red: red}
	marks := map[ticket.Status]string{ticket.Green: "✓", ticket.Neutral: "·", ticket.Amber: "–", ticket.Red: "✗"}
	var b strings.Builder
	colour := t.colour()
	title, text := placeHead(r.Status, r.Lines[2].Line)
	fmt.Fprintf(&b, "%s\n%s\n", colour(codes[r.Status], title), text)
	fmt.Fprintf(&b, "  room     %s\n  ticket   %s\n", printable(r.Origin), r.Ticket)
	last := r.Lines[len(r.Lines)-1]
	if _, ok := last.Facts["position"]; ok && last.Status != ticket.Red {
		fmt.Fprintf(&b, "  place    %s\n", spell("{position}", last.Facts))
	}
	b.WriteString("\nChecks\n")
	for i, line := range r.Lines {
		code := codes[line.Status]
		fmt.Fprintf(&b, "  %2d %s %s\n", i+1, colour(code, marks[line.Status]), line.Title)
		printItem(&b, "       ", line.Text, func(s string) string { return colour(code, s) })
	}
	b.WriteString("\nNot proven\n")
	for _, text := range r.NotProven {
		printItem(&b, "   - ", text, func(s string) string { return s })
	}
	_, err := fmt.Fprint(t.out, b.String())
	return err
}
