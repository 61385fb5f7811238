package account_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/proofline/proofline/console/account"
)

// TestHash checks that cost and salt are part of the hash.
func TestHash(t *testing.T) {
	t.Parallel()
	salt := []byte("0123456789abcdef")
	phc := account.DefaultCost.Hash("password", salt)
	if !strings.HasPrefix(phc, "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$") {
		t.Errorf("hash %s", phc)
	}
	cost, gotSalt, key, err := account.ParseHash(phc)
	if err != nil || cost != account.DefaultCost || !bytes.Equal(gotSalt, salt) || len(key) != 32 {
		t.Errorf("parsed %v %x %x, %v", cost, gotSalt, key, err)
	}
	for _, wrong := range []string{
		"", "$argon2i" + phc[9:], strings.Replace(phc, "v=19", "v=16", 1), strings.Replace(phc, "m=19456",
			"m=99999999", 1),
		strings.Replace(phc, "t=2", "t=0", 1), strings.Replace(phc, "p=1", "p=0", 1), phc[:len(phc)-2], phc +
			"$", phc + "=", "plain",
	} {
		if _, _, _, err := account.ParseHash(wrong); err == nil {
			t.Errorf("%q is a hash", wrong)
		}
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(account.DefaultCost.Hash("password", make([]byte, 16)))
	f.Add("$argon2id$v=19$m=64,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, phc string) {
		cost, salt, key, err := account.ParseHash(phc)
		if err == nil && (cost.Memory > 1<<20 || cost.Passes > 64 || cost.Threads == 0 || len(salt) < 8 ||
			len(key) != 32) {
			t.Errorf("%q: %+v", phc, cost)
		}
	})
}

func TestPasswordProblem(t *testing.T) {
	t.Parallel()
	for _, good := range []string{password, "ünïcödé wörd", "0f5b a417 11c9", strings.Repeat("long enough ", 85)} {
		if problem := account.PasswordProblem(good, "box.office@example.com"); problem != "" {
			t.Errorf("%q %s", good, problem)
		}
	}
	for _, bad := range []string{
		"", "elevenchars", "ünïcödéwörd", strings.Repeat("a long one ",
			94), "xx BOX.OFFICE xx yy", "123456789012", "1234567890123456", "password1234",
		"Passw0rd!2026", "QWERTYuiop12", "aaaaaaaaaaaa", "abababababab", "iloveyou1234", "proofline-2026",
		"correcthorsebatterystaple", "long enough\xff",
	} {
		if problem := account.PasswordProblem(bad, "box.office@example.com"); problem == "" {
			t.Errorf("%q is a good password", bad)
		}
	}
	if problem := account.PasswordProblem("the al who sings", "al@example.com"); problem != "" {
		t.Errorf("a short name is part of many words: %s", problem)
	}
}

// TestRehash signs in with a hash of another cost, and with a password typed on another keyboard.
func TestRehash(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	owner, _ := k.owner()
	cheap := account.Cost{Memory: 8, Passes: 1, Threads: 1}.Hash("caf\u00e9 au lait noir", []byte("0123456789abcdef"))
	if _, err := k.pool.Exec(ctx, "update people set password = $1", cheap); err != nil {
		t.Fatal(err)
	}
	if _, err := k.SignIns.SignIn(ctx, owner.Email, "cafe\u0301 au lait noir", browser); err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := k.pool.QueryRow(ctx, "select password from people").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Errorf("stored %s", stored)
	}
	if _, err := k.SignIns.SignIn(ctx, owner.Email, "caf\u00e9 au lait noir", browser); err != nil {
		t.Error(err)
	}
}

func TestNormalEmail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		" Box.Office+x@Example.COM\n": "box.office+x@example.com", "a@b": "a@b",
		"": "", "a": "", "@b": "", "a@": "", "a@b@c": "", "a b@c": "", "a@b..c": "", "a@-b": "", "\u00e4@b": "",
		"a@b.c\r\nBcc: x": "", "A <a@b>": "",
		strings.Repeat("a", 65) + "@b": "", "a@" + strings.Repeat("b.", 130) + "c": "",
	} {
		got, ok := account.NormalEmail(text)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}

func FuzzNormalEmail(f *testing.F) {
	f.Add("Owner@Example.com")
	f.Fuzz(func(t *testing.T, text string) {
		email, ok := account.NormalEmail(text)
		if !ok {
			return
		}
		if again, ok := account.NormalEmail(email); !ok || again != email || len(email) > 254 ||
			strings.ContainsAny(email, " \r\n<>\"") {
			t.Errorf("%q: %q, then %q, %t", text, email, again, ok)
		}
	})
}

func FuzzNormalHost(f *testing.F) {
	f.Add("B\u00fccher.example.com.")
	f.Add("1.2.3.4")
	f.Add("0\x80.A")
	f.Fuzz(func(t *testing.T, text string) {
		host, ok := account.NormalHost(text)
		if !ok {
			return
		}
		if again, ok := account.NormalHost(host); !ok || again != host || len(host) > 253 ||
			strings.ContainsAny(host, " :/_*@\r\n") || host != strings.ToLower(host) {
			t.Errorf("%q: %q, then %q, %t", text, host, again, ok)
		}
	})
}

func FuzzNormalName(f *testing.F) {
	f.Add(" Owner ")
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := account.NormalName(text)
		if ok && (name == "" || strings.ContainsAny(name, "\r\n\x00\u202e")) {
			t.Errorf("%q: %q", text, name)
		}
	})
}

func TestDevice(t *testing.T) {
	t.Parallel()
	for agent, want := range map[string]string{
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0":           "Edge on Windows",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                            "Chrome on Android",
		"curl/8.5.0": "curl on unknown system",
		"":           "Browser on unknown system",
	} {
		if got := account.Device(agent); got != want {
			t.Errorf("%q: %s", agent, got)
		}
	}
}
