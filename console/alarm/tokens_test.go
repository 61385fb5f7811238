package alarm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/hook"
	"github.com/proofline/proofline/room"
)

// heard notes what people are told once.
type heard struct {
	told
	org  uuid.UUID // that wants to know
	list []string
	fail error
}

func (h *heard) Wants(org uuid.UUID, kind hook.AlertKind) bool {
	return org == h.org && kind == hook.AlertTokenEnds
}

func (h *heard) AlertOnce(_ context.Context, org uuid.UUID, kind hook.AlertKind, about, text string) error {
	h.list = append(h.list, strings.Join([]string{org.String(), string(kind), about, text}, "|"))
	return h.fail
}

// TestTokens tells each organization of its own tokens, what ends and when, and
// what to do.
func TestTokens(t *testing.T) {
	t.Parallel()
	org, other := uuid.New(), uuid.New()
	id := uuid.MustParse("00000000-0000-8000-8000-0000000000aa")
	used := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	ending := func(of uuid.UUID, scopes account.Scope, notice account.Notice, left time.Duration) account.ExpiringToken {
		expires := used.Add(30*time.Minute + left)
		return account.ExpiringToken{TokenInfo: account.TokenInfo{ID: id, Name: "shop", Scopes: scopes, Expires: expires, Used: &used}, Org: of, Notice: notice, Left: left}
	}
	people, endings, failure := &heard{org: org}, []account.ExpiringToken(nil), error(nil)
	a := New(Options{
		Rooms: room.New(room.Options{PublicURL: "https://queue.example.com"}), Teller: people, Log: slog.New(slog.DiscardHandler),
		Endings: func(context.Context) ([]account.ExpiringToken, error) { return endings, failure },
	})
	const day = 24 * time.Hour
	const todo = " Make the next one at https://queue.example.com/console/tokens, put it where this one is, and revoke this one."
	for _, c := range []struct {
		one  account.ExpiringToken
		want string
	}{
		{
			ending(org, account.Connect, account.NoticeSoon, 13*day+time.Hour),
			`soon|The token "shop" (connect) ends: 5 December 2026, 03:00 UTC, in 13 days. It was last used 22 November 2026, 01:30 UTC. ` +
				`Then connectors keep the rules that they have, hear of no new ones, and open and shut gates by their own counts.`,
		},
		{
			ending(org, account.Read|account.Pull, account.NoticeLast, day),
			`last|The token "shop" (read pull) ends: 23 November 2026, 02:00 UTC, in a day. It was last used 22 November 2026, 01:30 UTC. Then whoever uses it is refused.`,
		},
		{
			ending(org, account.Connect, account.NoticeEnd, -time.Hour),
			`ended|The token "shop" (connect) has ended: 22 November 2026, 01:00 UTC. It was last used 22 November 2026, 01:30 UTC. ` +
				`Since then connectors go by the rules that they have, and open and shut gates by their own counts.`,
		},
		{
			ending(org, account.Operate, account.NoticeEnd, 0),
			`ended|The token "shop" (operate) has ended: 22 November 2026, 02:00 UTC. It was last used 22 November 2026, 01:30 UTC. Since then whoever uses it has been refused.`,
		},
	} {
		people.list, endings = nil, []account.ExpiringToken{ending(other, account.Connect, account.NoticeLast, day), c.one}
		a.lookAtTokens(t.Context())
		want := []string{org.String() + "|token_ends|token " + id.String() + " " + c.want + todo}
		if !slices.Equal(people.list, want) {
			t.Errorf("told\n%q, want\n%q", people.list, want)
		}
	}
	people.list, people.fail, endings = nil, errors.New("no database"), []account.ExpiringToken{endings[1], endings[1]}
	if a.lookAtTokens(t.Context()); len(people.list) != 2 {
		t.Errorf("after one that cannot be told, told %q", people.list)
	}
	people.list, failure = nil, errors.New("no database")
	if a.lookAtTokens(t.Context()); len(people.list) != 0 {
		t.Errorf("without tokens told %q", people.list)
	}
}
