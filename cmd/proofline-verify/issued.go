package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issued"
	"github.com/proofline/proofline/verifier"
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

// countTime is the time limit for reading a count.
const countTime = 30 * time.Second

// compare reads the counts, after the transcript, and compares each with the tickets that showed the issuer's methods.
func (f *issuedFlags) compare(ctx context.Context, a *report.Audit) (list []report.Issued, err error) {
	others, err := f.parseKeys()
	if err != nil || !a.Report.OK {
		return nil, err // a failed audit has counted nothing
	}
	for _, address := range f.counts {
		text, err := readCount(ctx, address)
		if err != nil {
			return nil, unreadable(err)
		}
		found, err := compareCount(text, a, others)
		if err != nil {
			return nil, &exit{exitUnreadable, fmt.Errorf("%s: %w", address, err),
				"give the address of an issuer of this room; for one that only signs blindly also its --issuer-key"}
		}
		list = append(list, found...)
	}
	return list, nil
}

// parseKeys reads the keys that the policy does not name.
func (f *issuedFlags) parseKeys() (list []ed25519.PublicKey, err error) {
	for _, flag := range f.keys {
		text, err := readText("--issuer-key", flag)
		if err != nil {
			return nil, err
		}
		parts := strings.SplitN(strings.TrimPrefix(text, "issued "), "+", 3)
		_, err = note.NewVerifier(strings.Join(parts, "+"))
		key, err2 := base64.StdEncoding.DecodeString(parts[len(parts)-1])
		if err = errors.Join(err, err2); err != nil || len(key) != 1+ed25519.PublicKeySize {
			return nil, usage(fmt.Errorf("--issuer-key: %.80q is not an issuer's key", text),
				"give the line that begins with issued, as proofline issuer methods prints it")
		}
		list = append(list, key[1:])
	}
	return list, nil
}

// compareCount compares a count with the tickets of all methods that it is about.
func compareCount(text []byte, a *report.Audit, others []ed25519.PublicKey) (list []report.Issued, err error) {
	keys := slices.Clone(others)
	for _, m := range a.Report.Methods {
		if key, err := hex.DecodeString(m.Key); err == nil && m.Kind == credential.Signed {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		c, err := issued.Open(text, key)
		if errors.Is(err, issued.ErrKey) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, m := range a.Report.Methods {
			accounts, isOffered := c.Of(a.Entry, m.Name)
			if isOffered && isCountedBy(m, key) {
				list = append(list, report.Issued{By: c.By, Method: m.Name, Accounts: accounts, Shown: uint64(m.Shown), Millis: c.Millis})
			}
		}
		if list == nil {
			return nil, errors.New("the issuer counts no credentials of this room")
		}
		return list, nil
	}
	return nil, issued.ErrKey
}

// isCountedBy reports whether an issuer with a key can count the credentials of a method. The policy does not say who
// else signs blindly.
func isCountedBy(m verifier.Method, key ed25519.PublicKey) bool {
	return m.Kind == credential.Blind || m.Kind == credential.Signed && m.Key == hex.EncodeToString(key)
}

// readCount reads a count from an address or a file.
func readCount(ctx context.Context, address string) ([]byte, error) {
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return os.ReadFile(address) //nolint:gosec // named by the user
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // only read
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers with %s", address, response.Status)
	}
	return io.ReadAll(io.LimitReader(response.Body, issued.MaxSize+1))
}

// printContradictions prints at the top which issuers contradict the transcript.
func printContradictions(b *strings.Builder, list []report.Issued, colour func(int, string) string) {
	for _, i := range list {
		if i.Contradicts() {
			printItem(b, "  issuer   ", fmt.Sprintf("More tickets showed %s than its issuer counts: %d and %d. See the door, below.",
				i.Method, i.Shown, i.Accounts), func(s string) string { return colour(red, s) })
		}
	}
}

// contradiction returns the error for an issuer that contradicts the transcript. The room's own checks have passed.
func contradiction(list []report.Issued) error {
	for _, i := range list {
		if i.Contradicts() {
			return &exit{exitFailed, fmt.Errorf("the issuer of %s counts fewer credentials than the room shows", i.Method),
				"keep the count and the transcript, and ask the issuer; the room itself is verified"}
		}
	}
	return nil
}
