package main

import (
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/verifier"
)

// trustFlags name the beacons and witnesses that the user trusts to be independent of the operator.
type trustFlags struct{ beacons, witnesses []string }

func (f *trustFlags) define(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.beacons, "beacon", nil,
		"`HASH` of a drand chain that the operator does not run (quicknet is built in); may be repeated")
	c.Flags().StringArrayVar(&f.witnesses, "witness", nil,
		"`KEY` of a witness that is independent of the operator: the key itself, or @FILE; may be repeated")
}

// parse reads the flags.
func (f *trustFlags) parse() (t verifier.Trust, err error) {
	for _, text := range f.beacons {
		hash, err := hex.DecodeString(text)
		if err != nil || len(hash) != 32 {
			return t, usage(fmt.Errorf("--beacon: %.80q is not the hash of a drand chain", text),
				"a hash has 64 hex digits")
		}
		t.Beacons = append(t.Beacons, [32]byte(hash))
	}
	for _, text := range f.witnesses {
		key, err := readText("--witness", text)
		if err != nil {
			return t, err
		}
		if _, err := audit.ParseWitness(key); err != nil {
			return t, usage(errors.New("--witness: not the verifier key of a witness"),
				"give the key that proofline-verify witness prints")
		}
		t.Witnesses = append(t.Witnesses, key)
	}
	return t, nil
}
