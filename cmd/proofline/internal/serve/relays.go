package serve

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/fairness/beacon"
	"github.com/proofline/proofline/fairness/beacon/relay"
	"github.com/proofline/proofline/room/evidence"
)

// chainTimeout limits the request for the relays' chain.
const chainTimeout = 20 * time.Second

// NoRelays is the value of --beacon-relays that turns the beacon off.
const NoRelays = "none"

// findChain finds the relays' chain. Quicknet is built in; any other chain is
// fetched from the relays and checked against its hash.
func (f *serveFlags) findChain(ctx context.Context) error {
	if len(f.relays) == 0 || slices.Equal(f.relays, []string{NoRelays}) {
		if f.chain != "" {
			return cli.Usage(errors.New("--beacon-chain needs --beacon-relays"), "give the URLs of its relays")
		}
		f.Log.Warn("public randomness is off: the operator could choose the draws of new rooms, and audits say so (level 1)")
		return nil
	}
	client := &relay.Client{Chain: beacon.Quicknet(), Log: f.Log}
	for _, text := range f.relays {
		address, err := relay.ParseURL(text)
		if err != nil {
			return cli.Usage(fmt.Errorf("--beacon-relays: %w", err),
				"give addresses such as "+relay.Public()[0]+", or "+NoRelays)
		}
		client.URLs = append(client.URLs, address)
	}
	if f.chain != "" {
		hash, err := hex.DecodeString(f.chain)
		if err != nil || len(hash) != 32 {
			return cli.Usage(errors.New("--beacon-chain: not the hash of a chain"),
				"give the 64 hex digits that relays and proofline beacon serve print")
		}
		ctx, cancel := context.WithTimeout(ctx, chainTimeout)
		defer cancel()
		chain, err := client.Find(ctx, [32]byte(hash))
		if err != nil {
			return cli.Failed(fmt.Errorf("--beacon-chain: %w", err), "check --beacon-relays")
		}
		client.Chain = chain
	}
	known := evidence.Chain{Chain: client.Chain, Rounds: client}
	monitor := &relay.Monitor{Client: client, OnChange: func(err error) { f.reportRelays(ctx, client, err) }}
	known.Reach = monitor
	go monitor.Run(ctx)
	f.Chains = []evidence.Chain{known}
	return nil
}

// reportRelays logs whether the relays of a chain can be reached. The server starts even without
// them, because they may come back.
func (f *serveFlags) reportRelays(ctx context.Context, client *relay.Client, err error) {
	log := f.Log.With("chain", client.Chain.ID)
	if err == nil {
		log.Info("beacon relays answer")
		return
	}
	if _, other := client.Info(ctx); errors.Is(other, relay.ErrChain) {
		log.Error("no relay serves this chain: give the chain that they serve with --beacon-chain", "err", other)
		return
	}
	log.Warn("cannot reach the beacon relays: draws wait for one, and new rooms must name a beacon or none; "+
		"to work without public randomness, start with --beacon-relays "+NoRelays, "err", err)
}
