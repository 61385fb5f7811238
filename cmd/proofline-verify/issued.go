package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/verifier/counted"
	"github.com/proofline/proofline/verifier/report"
)

// issuedFlags name the signed counts of issuers to compare with the transcript.
type issuedFlags struct{ counts, keys []string }

func (f *issuedFlags) define(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.counts, "issued", nil,
		"compare with an issuer's signed count at this `URL`, or in a file, such as https://club.example.org/issued; may be repeated")
	c.Flags().StringArrayVar(&f.keys, "issuer-key", nil,
		"`KEY` of an issuer of blind credentials alone, as proofline issuer methods prints it: the key itself, or @FILE; may be repeated")
}

// compare reads the counts, after the transcript, and compares each with the tickets that showed the issuer's methods.
func (f *issuedFlags) compare(ctx context.Context, a *report.Audit) (list []counted.Method, err error) {
	var others []ed25519.PublicKey
	for _, flag := range f.keys {
		text, err := readText("--issuer-key", flag)
		if err != nil {
			return nil, err
		}
		key, err := counted.ParseKey(strings.TrimPrefix(text, "issued "))
		if err != nil {
			return nil, usage(fmt.Errorf("--issuer-key: %.80q is %w", text, err),
				"give the line that begins with issued, as proofline issuer methods prints it")
		}
		others = append(others, key)
	}
	if !a.Report.OK {
		return nil, nil // a failed audit has counted nothing
	}
	for _, address := range f.counts {
		text, err := counted.Read(ctx, address)
		if err != nil {
			return nil, unreadable(err)
		}
		found, err := counted.Compare(text, a.Report, a.Entry, others)
		if err != nil {
			return nil, &exit{exitUnreadable, fmt.Errorf("%s: %w", address, err),
				"give the address of an issuer of this room; for one that only signs blindly also its --issuer-key"}
		}
		list = append(list, found...)
	}
	return list, nil
}

// printContradictions prints at the top which issuers contradict the transcript.
func printContradictions(b *strings.Builder, list []counted.Method, colour func(int, string) string) {
	for _, m := range list {
		if m.Contradicts() {
			printItem(b, "  issuer   ", fmt.Sprintf("More tickets showed %s than its issuer counts: %d and %d. See the door, below.",
				m.Method, m.Shown, m.Accounts), func(s string) string { return colour(red, s) })
		}
	}
}

// contradiction returns the error for an issuer that contradicts the transcript. The room's own checks have passed.
func contradiction(list []counted.Method) error {
	for _, m := range list {
		if m.Contradicts() {
			return &exit{exitFailed, fmt.Errorf("the issuer of %s counts fewer credentials than the room shows", m.Method),
				"keep the count and the transcript, and ask the issuer; the room itself is verified"}
		}
	}
	return nil
}
