package alert

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
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/room"
)

// sentOnce records alerts about tokens.
type sentOnce struct {
	sent
	org  uuid.UUID // the only one that wants alerts
	list []string
	fail error
}

func (s *sentOnce) Wants(org uuid.UUID, kind webhook.AlertKind) bool {
	return org == s.org && kind == webhook.AlertTokenEnds
}

func (s *sentOnce) SendOnce(_ context.Context, org uuid.UUID, kind webhook.AlertKind, about, text string) error {
	s.list = append(s.list, strings.Join([]string{org.String(), string(kind), about, text}, "|"))
	return s.fail
}

// TestTokens checks that each organization gets alerts about its own tokens, with their texts.
func TestTokens(t *testing.T) {
	t.Parallel()
	org, other := uuid.New(), uuid.New()
	id := uuid.MustParse("00000000-0000-8000-8000-0000000000aa")
	used := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	expiring := func(of uuid.UUID, scopes account.Scope, notice account.Notice,
		left time.Duration) account.ExpiringToken {
		expires := used.Add(30*time.Minute + left)
		return account.ExpiringToken{TokenInfo: account.TokenInfo{ID: id, Name: "shop", Scopes: scopes,
			Expires: expires, Used: &used}, Org: of, Notice: notice, Left: left}
	}
	alerts, tokens, failure := &sentOnce{org: org}, []account.ExpiringToken(nil), error(nil)
	w := New(Options{
		Rooms: room.New(room.Options{PublicURL: "https://queue.example.com"}), Sender: alerts, Log: slog.New(slog.DiscardHandler),
		ExpiringTokens: func(context.Context) ([]account.ExpiringToken, error) { return tokens, failure },
	})
	const day = 24 * time.Hour
	const todo = " Create a new token at https://queue.example.com/console/tokens, use it instead, and revoke this one."
	for _, c := range []struct {
		one  account.ExpiringToken
		want string
	}{
		{
			expiring(org, account.Connect, account.NoticeSoon, 13*day+time.Hour),
			`soon|The token "shop" (connect) expires on 5 Dec 2026, 03:00 UTC, in 13 days. ` +
				`It was last used on 22 Nov 2026, 01:30 UTC. ` +
				`After that, connectors will keep their current rules, without updates, and open and shut gates by their own counts.`,
		},
		{
			expiring(org, account.Read|account.Pull, account.NoticeLast, day),
			`last|The token "shop" (read pull) expires on 23 Nov 2026, 02:00 UTC, in a day. ` +
				`It was last used on 22 Nov 2026, 01:30 UTC. After that, requests with it will be refused.`,
		},
		{
			expiring(org, account.Connect, account.NoticeEnd, -time.Hour),
			`ended|The token "shop" (connect) expired on 22 Nov 2026, 01:00 UTC. ` +
				`It was last used on 22 Nov 2026, 01:30 UTC. ` +
				`Since then, connectors have kept their current rules, without updates, and opened and shut gates by their own counts.`,
		},
		{
			expiring(org, account.Operate, account.NoticeEnd, 0),
			`ended|The token "shop" (operate) expired on 22 Nov 2026, 02:00 UTC. ` +
				`It was last used on 22 Nov 2026, 01:30 UTC. Since then, requests with it have been refused.`,
		},
	} {
		alerts.list, tokens = nil, []account.ExpiringToken{expiring(other, account.Connect, account.NoticeLast, day),
			c.one}
		w.checkTokens(t.Context())
		want := []string{org.String() + "|token_ends|token " + id.String() + " " + c.want + todo}
		if !slices.Equal(alerts.list, want) {
			t.Errorf("alerts\n%q, want\n%q", alerts.list, want)
		}
	}
	alerts.list, alerts.fail, tokens = nil, errors.New("no database"), []account.ExpiringToken{tokens[1], tokens[1]}
	if w.checkTokens(t.Context()); len(alerts.list) != 2 {
		t.Errorf("after a failed alert: %q", alerts.list)
	}
	alerts.list, failure = nil, errors.New("no database")
	if w.checkTokens(t.Context()); len(alerts.list) != 0 {
		t.Errorf("without a list of tokens: %q", alerts.list)
	}
}
