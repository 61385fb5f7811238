package rehearse

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/beacon/local"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/setting"
)

// rounds is a chain with a round each second.
type rounds struct{ *local.Beacon }

func withBeacon(t *testing.T) func(*room.Options) {
	t.Helper()
	b, err := local.New(local.NewKey(), local.Config{ID: "test", Genesis: time.Now().Unix() - 1000, Period: 1})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *room.Options) { o.Chains = []evidence.Chain{{Chain: b.Chain(), Rounds: rounds{b}}} }
}

// Wait implements [evidence.Rounds].
func (r rounds) Wait(ctx context.Context, round uint64) ([]byte, error) {
	for {
		if signature, err := r.Sign(round); err == nil {
			return signature, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TestDoor rehearses a room with each kind of method, two lanes, lots, slots and parties. The keys are those of other
// issuers, and the work would take hours.
func TestDoor(t *testing.T) {
	t.Parallel()
	s := newServer(t, withBeacon(t))
	s.lingers = 300 * time.Millisecond
	base, slots := sale("sale"), room.Duration(10*time.Minute)
	base.Beacon, base.Slots, base.Party = "", &slots, 4
	base.Methods = []credential.Method{
		{Name: "club", Kind: credential.Signed, Key: setting.OwnKey},
		issuertest.Blind("fans", 0).Method, {Name: "work", Kind: credential.Work, Bits: 40},
	}
	base.Issuers = []string{"club https://club.example.org/derby Example Fan Club"}
	base.Lanes = []room.LaneRule{{Name: "general", Weight: 1, Needs: []string{"club", "work"}},
		{Name: "fans", Weight: 1, Needs: []string{"fans"}}}
	base.Lots = []string{"club", "fans"}
	if _, err := s.Start(t.Context(), owner(1), base, quick()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rehearsal is over", func() bool { return s.List(owner(1).Org)[0].Over })
	end := s.List(owner(1).Org)[0]
	if end.Joined != 60 || end.Failed != 0 || end.Admitted < 30 {
		t.Errorf("%+v", end.Progress)
	}
	r, err := s.rooms.Get(t.Context(), end.Slug)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Config()
	if len(c.Methods) != 3 || c.Methods[0].Key == setting.OwnKey || c.Methods[1].Key == base.Methods[1].Key ||
		c.Methods[2].Bits != MaxWork || len(c.Lots) != 2 || c.Party != 4 || c.Slots == nil {
		t.Errorf("the copy is %+v", c)
	}
	if settings, _ := r.Settings(); len(settings.Issuers) > 0 {
		t.Errorf("the copy sends people to %v", settings.Issuers)
	}
	club, fans, work := r.Snapshot().Door.Methods[0].Taken, r.Snapshot().Door.Methods[1].Taken, r.Snapshot().Door.Methods[2].Taken
	if work < 15 || work > 45 || club < work || fans < 60-work || club+fans <= 60 || club+fans >= 120 {
		t.Errorf("%d showed club, %d fans and %d work", club, fans, work)
	}
	if seats := r.Snapshot().Counts.Seats; seats <= 60 || seats >= 240 {
		t.Errorf("%d seats", seats)
	}
}

// TestLimitedDoor: when a method takes fewer credentials than there are visitors, the others cannot join.
func TestLimitedDoor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.lingers = 300 * time.Millisecond
	base := sale("sale")
	base.Methods = []credential.Method{issuertest.Signed("presale", 20).Method}
	base.Lanes = []room.LaneRule{{Name: fairness.General, Weight: 1, Needs: []string{"presale"}}}
	if _, err := s.Start(t.Context(), owner(1), base, quick()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rehearsal is over", func() bool { return s.List(owner(1).Org)[0].Over })
	if end := s.List(owner(1).Org)[0]; end.Joined != 20 || end.Failed != 40 {
		t.Errorf("%+v", end.Progress)
	}
}

// TestDesk: what the desk vouches for verifies for one ticket, and no account gets two blind signatures.
func TestDesk(t *testing.T) {
	t.Parallel()
	c := room.Config{Methods: []credential.Method{issuertest.Signed("club", 2).Method, issuertest.Blind("fans", 0).Method,
		{Name: "work", Kind: credential.Work, Bits: 30}}, Settings: room.Settings{Issuers: []string{"club https://club.example.org"}}}
	before := c.Methods[0]
	d, err := newDesk(&c)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Issuers) > 0 || c.Methods[0].Limit != 2 || before.Key == c.Methods[0].Key {
		t.Errorf("%+v", c)
	}
	s := credential.Subject{Lane: "general", Ticket: fairness.Ticket{1}, Round: []byte("round")}
	other := s
	other.Ticket[0]++
	for _, m := range c.Methods {
		v, err := credential.NewVerifier(m)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := d.vouch(&m, s, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(s, shown); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		if m.Kind != credential.Work && v.Verify(other, shown) == nil { // work for another ticket may be enough by chance
			t.Errorf("%s verifies for another ticket", m.Name)
		}
	}
	if _, err := d.vouch(&c.Methods[1], other, 1); !errors.Is(err, errUsed) {
		t.Errorf("a second blind signature: %v", err)
	}
	if _, err := d.vouch(&c.Methods[0], s, 2); !errors.Is(err, errNothing) {
		t.Errorf("a third account of two: %v", err)
	}
}
