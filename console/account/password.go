package account

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Limits for passwords.
const (
	MinPassword = 12   // characters
	maxPassword = 1024 // bytes
)

// Cost holds the parameters of argon2id.
type Cost struct {
	Memory  uint32 // KiB
	Passes  uint32
	Threads uint8
}

// DefaultCost is the minimum that OWASP's Password Storage Cheat Sheet recommends. The server that
// checks passwords also serves visitors: 19 MiB and one thread cost them little, and sign-ins are
// rare.
var DefaultCost = Cost{Memory: 19 << 10, Passes: 2, Threads: 1}

// maxHashing is the number of passwords from unknown browsers that are hashed at once. One more, from a
// known browser or a signed-in person, is hashed alongside, so hashing takes at most 57 MiB.
var maxHashing = min(max(runtime.GOMAXPROCS(0)/2, 1), 2)

const (
	saltSize = 16
	hashSize = 32
)

// Limits for the parameters of a stored hash.
const (
	maxMemory = 1 << 20 // KiB
	maxPasses = 64
)

// errHash is returned for a malformed stored hash.
var errHash = errors.New("not an argon2id hash")

// hash returns the PHC string of a password.
func (c Cost) hash(password string, salt []byte) string {
	return c.format(salt, argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Threads, hashSize))
}

func (c Cost) format(salt, key []byte) string {
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, c.Threads,
		encode(salt), encode(key))
}

// parseHash parses a PHC string.
func parseHash(phc string) (c Cost, salt, key []byte, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, nil, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.Memory, &c.Passes, &c.Threads); err != nil {
		return c, nil, nil, errHash
	}
	salt, saltErr := base64.RawStdEncoding.Strict().DecodeString(parts[4])
	key, keyErr := base64.RawStdEncoding.Strict().DecodeString(parts[5])
	sane := c.Memory >= 8 && c.Memory <= maxMemory && c.Passes >= 1 && c.Passes <= maxPasses && c.Threads >= 1 &&
		len(salt) >= 8 && len(key) == hashSize
	if saltErr != nil || keyErr != nil || !sane {
		return c, nil, nil, errHash
	}
	return c, salt, key, nil
}

// normalPassword returns the text to hash, which does not depend on how a keyboard composes
// characters (NIST SP 800-63B section 5.1.1.2).
func normalPassword(password string) string { return norm.NFKC.String(password) }

// hasher hashes and checks passwords, only a few at a time.
type hasher struct {
	cost    Cost
	random  random
	unknown chan struct{} // semaphore for unknown browsers, of size maxHashing
	known   chan struct{} // semaphore for known browsers and signed-in people, of size 1
	dummy   string        // a hash that matches no password, for addresses without an account
}

func newHasher(cost Cost, random random) *hasher {
	return &hasher{
		cost: cost, random: random, unknown: make(chan struct{}, maxHashing), known: make(chan struct{}, 1),
		dummy: cost.format(make([]byte, saltSize), make([]byte, hashSize)),
	}
}

// hash hashes a new password, after waiting for its turn.
func (h *hasher) hash(ctx context.Context, password string) (phc string, err error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(h.random, salt); err != nil {
		return "", fmt.Errorf("make salt: %w", err)
	}
	err = inTurn(ctx, h.known, func() { phc = h.cost.hash(normalPassword(password), salt) })
	return phc, err
}

// check reports whether a password of a known browser or a signed-in person matches a hash. An empty
// hash matches nothing, and takes as long to check.
func (h *hasher) check(ctx context.Context, phc, password string) (bool, error) {
	return h.checkIn(ctx, h.known, phc, password)
}

// checkUnknown does what check does, for unknown browsers.
func (h *hasher) checkUnknown(ctx context.Context, phc, password string) (bool, error) {
	return h.checkIn(ctx, h.unknown, phc, password)
}

// checkIn checks a password once turns has room.
func (h *hasher) checkIn(ctx context.Context, turns chan struct{}, phc, password string) (ok bool, err error) {
	against := phc
	if against == "" {
		against = h.dummy
	}
	cost, salt, key, err := parseHash(against)
	if err != nil {
		return false, err
	}
	if len(password) > maxPassword {
		password = "" // it is longer than any stored password
	}
	err = inTurn(ctx, turns, func() {
		got := argon2.IDKey([]byte(normalPassword(password)), salt, cost.Passes, cost.Memory, cost.Threads, hashSize)
		ok = subtle.ConstantTimeCompare(got, key) == 1
	})
	return ok && phc != "", err
}

// isStale reports whether a hash was made with parameters other than the current ones.
func (h *hasher) isStale(phc string) bool {
	cost, _, _, err := parseHash(phc)
	return err != nil || cost != h.cost
}

// inTurn runs hash once turns, a semaphore, has room.
func inTurn(ctx context.Context, turns chan struct{}, hash func()) error {
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to hash password: %w", ctx.Err())
	}
	defer func() { <-turns }()
	hash()
	return nil
}

// commonPrefixes lists the most frequent beginnings of leaked passwords of 12 or more characters.
var commonPrefixes = []string{
	"123456789", "1234567890", "0123456789", "987654321", "0987654321", "1q2w3e4r5t", "1qaz2wsx", "q1w2e3r4",
	"qwertyuiop", "qwerty123", "asdfghjkl", "zxcvbnm", "abcdefgh", "abc123", "passwordpassword", "password1",
	"password!",
	"passw0rd", "p@ssw0rd", "p@ssword", "iloveyou", "letmein", "welcome", "administrator", "admin123", "changeme",
	"default",
	"football", "baseball", "superman", "princess", "sunshine", "dragon", "monkey", "trustno1", "whatever", "starwars",
	"correcthorsebatterystaple", "correct horse battery staple", "proofline",
}

// maxCommonTail is the number of characters that, added to a common prefix, do not make a password
// good.
const maxCommonTail = 6

// passwordProblem returns the problem with a password for that e-mail address; empty if there is
// none.
func passwordProblem(password, email string) string {
	local, _, _ := strings.Cut(email, "@")
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return "must be UTF-8"
	case utf8.RuneCountInString(password) < MinPassword:
		return fmt.Sprintf("must have at least %d characters: a few unrelated words are easy to remember", MinPassword)
	case len(password) > maxPassword:
		return fmt.Sprintf("must have at most %d bytes", maxPassword)
	case len(local) >= 3 && strings.Contains(lower, local):
		return "must not contain your e-mail address"
	case isMonotonous(lower) || slices.ContainsFunc(commonPrefixes, func(w string) bool {
		return strings.HasPrefix(lower, w) && utf8.RuneCountInString(lower) <= utf8.RuneCountInString(w)+maxCommonTail
	}):
		return "is too common"
	}
	return ""
}

// isMonotonous reports whether a text has fewer than four different characters.
func isMonotonous(text string) bool {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen) < 4
}
