package queueit

import (
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/fairness"
)

const secretKey = "4e1db821-a825-49da-acd0-5d376f2068db" // from KnownUser's own tests

// TestToken compares tokens with those that Node's crypto computes from the same texts, as
// test/UserInQueueServiceTest.js of KnownUser.V3.Javascript does.
func TestToken(t *testing.T) {
	t.Parallel()
	ticket, err := fairness.ParseTicket("ee1c7875-3ec0-84ef-91f3-25d50ce61d0a")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	for name, c := range map[string]struct {
		extend bool
		left   time.Duration
		want   string
	}{
		"the time of the pass":   {false, 15 * time.Minute, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"what is left is longer": {false, 14*time.Minute + time.Second, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"to the next second":     {false, 15*time.Minute + 900*time.Millisecond, "e_sale~ts_1900000300~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_15~rt_queue~h_@fixed"},
		"a short rest":           {false, 20 * time.Second, "e_sale~ts_1900000020~ce_false~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~cv_1~rt_queue~h_@short"},
		"as the site says":       {true, 15 * time.Minute, "e_sale~ts_1900000300~ce_true~q_ee1c7875-3ec0-84ef-91f3-25d50ce61d0a~rt_queue~h_@extend"},
	} {
		want := strings.NewReplacer(
			"@fixed", "b25c616385c085d12fde2d5461d0af61c0fc328addf055ef0b6990705b0cae59",
			"@short", "449d961214658c5b8a0e25493d18dce0be2ebdfcdc65e0eac0e8fe773fe4b119",
			"@extend", "fe7b5c93d3545c6eab2c00de50ef0c41ea193b85b56a67fcb519d91f4b64ab29",
		).Replace(c.want)
		if got := newToken([]byte(secretKey), "sale", ticket, Config{Extend: c.extend}, now, now.Add(c.left)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestProblems finds all problems.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		customer, key string
		hasKey        bool
		want          string // fields
	}{
		"all is well":      {"arena", secretKey, false, ""},
		"the key stays":    {"arena", "", true, ""},
		"nothing":          {"", "", false, "customer_id secret_key"},
		"no key":           {"arena", "", false, "secret_key"},
		"a short key":      {"arena", secretKey[:31], true, "secret_key"},
		"a long key":       {"arena", strings.Repeat("x", MaxKey+1), true, "secret_key"},
		"a key with space": {"arena", secretKey + " ", true, "secret_key"},
		"a key of letters": {"arena", strings.Repeat("\u00e9", 32), true, "secret_key"},
		"another customer": {"are_na", secretKey, false, "customer_id"},
		"a long customer":  {strings.Repeat("a", 64), secretKey, false, "customer_id"},
		"customer and a /": {"arena/x", secretKey, false, "customer_id"},
	} {
		var fields []string
		for _, p := range (&Config{CustomerID: c.customer}).problems(c.key, c.hasKey) {
			fields = append(fields, p.Field)
			if c.key != "" && strings.Contains(p.Detail, c.key) {
				t.Errorf("%s: the detail has the key", name)
			}
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: problems with %q, want %q", name, got, c.want)
		}
	}
}
