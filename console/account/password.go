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

// Bounds of passwords.
const (
	MinPassword = 12   // characters
	maxPassword = 1024 // bytes
)

// Cost is how hard argon2id works on a password.
type Cost struct {
	Memory  uint32 // KiB
	Passes  uint32
	Threads uint8
}

// DefaultCost is what OWASP's Password Storage Cheat Sheet asks for at least.
// The server that checks a password also lets people join: 19 MiB and one
// thread take little from them, and attempts are few.
var DefaultCost = Cost{Memory: 19 << 10, Passes: 2, Threads: 1}

// maxHashing is how many passwords are hashed at once, however many people sign
// in: they take at most 38 MiB, and leave half of the processors to the line.
var maxHashing = min(max(runtime.GOMAXPROCS(0)/2, 1), 2)

const (
	saltSize = 16
	hashSize = 32
)

// Bounds of what is believed of a stored hash.
const (
	maxMemory = 1 << 20 // KiB
	maxPasses = 64
)

// errHash is returned for a stored hash that is malformed.
var errHash = errors.New("not an argon2id hash")

// hash returns the PHC string of a password.
func (c Cost) hash(password string, salt []byte) string {
	key := argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Threads, hashSize)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, c.Threads, encode(salt), encode(key))
}

// parseHash reads a PHC string.
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
	sane := c.Memory >= 8 && c.Memory <= maxMemory && c.Passes >= 1 && c.Passes <= maxPasses && c.Threads >= 1 && len(salt) >= 8 && len(key) == hashSize
	if saltErr != nil || keyErr != nil || !sane {
		return c, nil, nil, errHash
	}
	return c, salt, key, nil
}

// normalPassword is what is hashed: the same whichever way a keyboard composes
// characters (NIST SP 800-63B section 5.1.1.2).
func normalPassword(password string) string { return norm.NFKC.String(password) }

// hashPassword hashes a new password, once there is a place for it.
func (a *Accounts) hashPassword(ctx context.Context, password string) (phc string, err error) {
	salt := make([]byte, saltSize)
	if _, err := io.ReadFull(a.Rand, salt); err != nil {
		return "", fmt.Errorf("make salt: %w", err)
	}
	err = a.inTurn(ctx, func() { phc = a.Cost.hash(normalPassword(password), salt) })
	return phc, err
}

// checkPassword tells whether a password is the one of a hash. Without a hash
// it is not, and takes as long.
func (a *Accounts) checkPassword(ctx context.Context, phc, password string) (ok bool, err error) {
	against := phc
	if against == "" {
		against = a.dummy
	}
	cost, salt, key, err := parseHash(against)
	if err != nil {
		return false, err
	}
	if len(password) > maxPassword {
		password = "" // no account has it
	}
	err = a.inTurn(ctx, func() {
		got := argon2.IDKey([]byte(normalPassword(password)), salt, cost.Passes, cost.Memory, cost.Threads, hashSize)
		ok = subtle.ConstantTimeCompare(got, key) == 1
	})
	return ok && phc != "", err
}

// isStale tells whether a hash was made at another cost than today's.
func (a *Accounts) isStale(phc string) bool {
	cost, _, _, err := parseHash(phc)
	return err != nil || cost != a.Cost
}

// inTurn hashes when there is a place for it.
func (a *Accounts) inTurn(ctx context.Context, hash func()) error {
	select {
	case a.hashing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to hash password: %w", ctx.Err())
	}
	defer func() { <-a.hashing }()
	hash()
	return nil
}

// worst are beginnings of passwords of 12 characters and more that lists of
// leaked ones are full of.
var worst = []string{
	"123456789", "1234567890", "0123456789", "987654321", "0987654321", "1q2w3e4r5t", "1qaz2wsx", "q1w2e3r4",
	"qwertyuiop", "qwerty123", "asdfghjkl", "zxcvbnm", "abcdefgh", "abc123", "passwordpassword", "password1", "password!",
	"passw0rd", "p@ssw0rd", "p@ssword", "iloveyou", "letmein", "welcome", "administrator", "admin123", "changeme", "default",
	"football", "baseball", "superman", "princess", "sunshine", "dragon", "monkey", "trustno1", "whatever", "starwars",
	"correcthorsebatterystaple", "correct horse battery staple", "proofline",
}

// worstTail is how many characters after a beginning of the list do not help.
const worstTail = 6

// passwordProblem says what is wrong with a password for that address, empty
// for nothing.
func passwordProblem(password, email string) string {
	local, _, _ := strings.Cut(email, "@")
	lower := strings.ToLower(password)
	switch {
	case !utf8.ValidString(password):
		return "must be UTF-8"
	case utf8.RuneCountInString(password) < MinPassword:
		return fmt.Sprintf("must have at least %d characters: a few words that do not belong together are easy to keep in mind", MinPassword)
	case len(password) > maxPassword:
		return fmt.Sprintf("must have at most %d bytes", maxPassword)
	case len(local) >= 3 && strings.Contains(lower, local):
		return "must not contain your e-mail address"
	case isMonotonous(lower) || slices.ContainsFunc(worst, func(w string) bool {
		return strings.HasPrefix(lower, w) && utf8.RuneCountInString(lower) <= utf8.RuneCountInString(w)+worstTail
	}):
		return "is one of the first that anybody would try"
	}
	return ""
}

// isMonotonous tells whether a text has fewer than four different characters.
func isMonotonous(text string) bool {
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	return len(seen) < 4
}
