package demo

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/visitor"
	"github.com/proofline/proofline/internal/wire"
)

// workBits is little work, so that one busy machine can do it for a whole crowd.
const workBits = 8

// worker does the work of joins.
type worker struct {
	entry [32]byte // hash of the room's first entry
	round []byte   // signature of the beacon round that work is done for
}

const workMethod = "work"

// guard makes the room's configuration need work for each join.
func (w *worker) guard(config map[string]any) {
	config["methods"] = []credential.Method{{Name: workMethod, Kind: credential.Work, Bits: workBits}}
	config["lanes"] = []map[string]any{{"name": fairness.General, "weight": 1, "needs": []string{workMethod}}}
}

// serve waits for the beacon round of a room, without which no work can begin.
func (w *worker) serve(ctx context.Context, r *demoRoom) (err error) {
	if w.entry, err = r.entry(ctx); err != nil {
		return err
	}
	for {
		var state wire.State
		if _, err := r.visitor.Call(ctx, http.MethodGet, "/state", nil, &state); err != nil {
			return err
		}
		if state.Work != nil && state.Work.Signature != nil {
			w.round, err = hex.DecodeString(*state.Work.Signature)
			return err
		}
		if err := visitor.Sleep(ctx, 100*time.Millisecond); err != nil {
			return context.Cause(ctx)
		}
	}
}

// vouch does the work of a ticket. It is the same for all.
func (w *worker) vouch(_ string, t fairness.Ticket) (credential.Credential, error) {
	s := credential.Subject{Room: w.entry, Lane: string(fairness.General), Ticket: t}
	message := append(s.AppendMessage(nil, workMethod, nil), w.round...)
	n := len(message)
	for nonce := uint64(0); ; nonce++ {
		message = binary.BigEndian.AppendUint64(message[:n], nonce)
		if credential.ZeroBits(message) >= workBits {
			return credential.Credential{Method: workMethod, Evidence: message[n:]}, nil
		}
	}
}
