package roomtest

import (
	"crypto/sha256"

	"github.com/proofline/proofline/fairness"
)

// Small writes a finished room of about sixty entries, with every kind of entry, skip reason and
// amendment. It has three drawn windows, the first with a join among its assignments, and a window
// without arrivals. The times of a given policy are kept.
func Small(keys *Keys, policy fairness.Policy) *Room {
	at := func(seconds int) fairness.Time { return policy.Opens + fairness.Time(seconds)*1000 }
	r := Open(keys, policy)
	message := sha256.Sum256([]byte("doors open soon"))
	r.Append(&fairness.Amend{Time: at(-60), Change: fairness.ChangeMessage, Message: message})
	r.Join(at(1), 5)
	r.Join(at(59), 3)

	r.Freeze(at(60))
	r.Draw(at(61))
	r.Assign(4)
	r.Join(at(62), 2)
	r.Assign(-1)
	r.Call(at(63), 4)
	r.Admit(at(64), r.At(2))
	r.Admit(at(65), r.At(1))
	r.Skip(at(66), r.At(3), fairness.Left)
	r.Append(&fairness.Amend{Time: at(67), Change: fairness.ChangeOutflow,
		Outflow: fairness.Outflow{PerMinute: 300, MaxActive: 50}})
	r.Append(&fairness.Amend{Time: at(68), Change: fairness.ChangePause, Claims: true})
	r.Append(&fairness.Amend{Time: at(69), Change: fairness.ChangeResume})
	r.Settle(at(70))

	r.Append(&fairness.Amend{Time: at(75), Change: fairness.ChangeWindows, Closes: fairness.Never,
		Windows: []fairness.WindowRule{{From: at(100), Length: 5_000}}})
	r.Skip(at(94), r.At(4), fairness.NoShow) // called at 63, with 30 seconds to claim and one second of pause
	r.Skip(at(95), r.At(6), fairness.Revoked)
	r.Call(at(96), 7)
	r.Join(at(107), 4)
	r.Admit(at(108), r.At(7))
	r.Settle(at(110))
	r.Call(at(111), 12)
	r.Admit(at(112), r.At(11))
	r.Admit(at(112), r.At(9))
	r.Skip(at(145), r.At(8), fairness.NoShow)
	r.End(at(150))
	return r
}
