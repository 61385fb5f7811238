package account

import (
	"context"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/qrcode"
)

// The second factor is a TOTP as authenticator apps implement it
// (https://www.rfc-editor.org/rfc/rfc6238): SHA-1, six digits, 30 seconds.
const (
	factorSize = 20 // length of the secret, in bytes
	factorStep = 30 * time.Second
	factorSkew = 1 // accepted difference between clocks, in steps
)

// RecoveryCodes is the number of recovery codes that a person gets.
const RecoveryCodes = 10

// recoverySize is the number of random bytes in a recovery code: 80 bits cannot be guessed even
// with a fast hash.
const recoverySize = 10

var plain32 = base32.StdEncoding.WithPadding(base32.NoPadding)

// Enrolment is a second factor that has not been confirmed by its first code.
type Enrolment struct {
	Secret string      // base32 in groups of four, for typing
	URL    string      // otpauth://
	QR     qrcode.Code // QR code of the URL
}

// Factors manages the second factors of people, and their recovery codes.
type Factors struct {
	store         *pgaccount.Factors
	people        *pgaccount.People
	sessions      *Sessions
	checkPassword func(context.Context, Session, string) error
	limits        *limiter
	sealer        *sealer
	activity      *recorder
	random        random
	url           string
	now           func() time.Time
}

// factorPurpose returns the purpose under which a person's TOTP secret is sealed.
func factorPurpose(person uuid.UUID) string { return "totp/" + person.String() }

// Begin creates a second factor that a code must confirm. Until then the current one stays
// valid.
func (fs *Factors) Begin(ctx context.Context, s Session) (Enrolment, error) {
	secret := make([]byte, factorSize)
	if _, err := io.ReadFull(fs.random, secret); err != nil {
		return Enrolment{}, fmt.Errorf("make second factor: %w", err)
	}
	if err := fs.store.SetPending(ctx, s.Person, fs.sealer.Seal(factorPurpose(s.Person), secret)); err != nil {
		return Enrolment{}, mapError(err)
	}
	return fs.enrolment(s.Email, secret)
}

// Pending returns the second factor that waits for confirmation, or [ErrNotFound].
func (fs *Factors) Pending(ctx context.Context, s Session) (Enrolment, error) {
	p, err := fs.people.Get(ctx, s.Person)
	if err != nil {
		return Enrolment{}, mapError(err)
	}
	if p.FactorPending == nil {
		return Enrolment{}, ErrNotFound
	}
	secret, err := fs.sealer.Open(factorPurpose(p.ID), p.FactorPending)
	if err != nil {
		return Enrolment{}, fmt.Errorf("open second factor: %w", err)
	}
	return fs.enrolment(p.Email, secret)
}

func (fs *Factors) enrolment(email string, secret []byte) (Enrolment, error) {
	text := plain32.EncodeToString(secret)
	issuer := "Proofline"
	if u, err := url.Parse(fs.url); err == nil && u.Hostname() != "" {
		issuer += " " + u.Hostname()
	}
	link := "otpauth://totp/" + url.PathEscape(issuer+":"+email) + "?secret=" + text + "&issuer=" +
		url.PathEscape(issuer)
	code, err := qrcode.Encode(link)
	if err != nil {
		return Enrolment{}, err
	}
	return Enrolment{Secret: groups(text), URL: link, QR: code}, nil
}

// groups splits text into groups of four characters.
func groups(text string) string {
	var parts []string
	for len(text) > 4 {
		parts, text = append(parts, text[:4]), text[4:]
	}
	return strings.Join(append(parts, text), " ")
}

// Confirm replaces the person's second factor with the pending one, given a code from it, and ends
// all other sessions. It returns the recovery codes, which are shown only once, and the session's
// new token. It returns [ErrCredentials] for a wrong code, [ErrNotFound] without a pending factor,
// or a *[RateError].
func (fs *Factors) Confirm(ctx context.Context, s Session, code string) (codes []string, token string,
	err error) {
	if _, err := fs.limits.attempt(ctx, codeLimit, s.Person.String()); err != nil {
		return nil, "", err
	}
	p, err := fs.people.Get(ctx, s.Person)
	if err != nil {
		return nil, "", mapError(err)
	}
	if p.FactorPending == nil {
		return nil, "", ErrNotFound
	}
	step, err := fs.stepOf(p.ID, p.FactorPending, code)
	if err != nil {
		return nil, "", err
	}
	codes, hashes, err := fs.newCodes(p.ID)
	if err != nil {
		return nil, "", err
	}
	if err := fs.store.Enable(ctx, p.ID, p.FactorPending, step, hashes, s.ID); err != nil {
		return nil, "", mapError(err)
	}
	if err := fs.factorChanged(ctx, s, "second-factor.enable"); err != nil {
		return nil, "", err
	}
	token, err = fs.sessions.rotate(ctx, s.ID)
	return codes, token, err
}

// factorChanged resets the count of failed codes and logs the change.
func (fs *Factors) factorChanged(ctx context.Context, s Session, verb string) error {
	if err := fs.limits.forget(ctx, codeLimit, s.Person.String()); err != nil {
		return err
	}
	return fs.activity.record(ctx, s.Actor(), verb, s.Email, nil)
}

// Remove removes the second factor. It requires a code or recovery code, and the password if
// there is one.
func (fs *Factors) Remove(ctx context.Context, s Session, password, code string) error {
	if s.HasPassword {
		if err := fs.checkPassword(ctx, s, password); err != nil {
			return err
		}
	} else if !s.IsConfirmed(fs.now()) {
		return ErrForbidden
	}
	p, err := fs.people.Get(ctx, s.Person)
	if err != nil {
		return mapError(err)
	}
	if p.Factor == nil {
		return ErrNotFound
	}
	if _, err := fs.use(ctx, p, code, p.ID.String()); err != nil {
		return err
	}
	if err := fs.store.Disable(ctx, p.ID); err != nil {
		return mapError(err)
	}
	return fs.factorChanged(ctx, s, "second-factor.remove")
}

// NewRecoveryCodes replaces a person's recovery codes. Without a second factor it returns
// [ErrNotFound].
func (fs *Factors) NewRecoveryCodes(ctx context.Context, s Session) ([]string, error) {
	if !s.HasFactor {
		return nil, ErrNotFound
	}
	codes, hashes, err := fs.newCodes(s.Person)
	if err != nil {
		return nil, err
	}
	if err := fs.store.SetCodes(ctx, s.Person, hashes); err != nil {
		return nil, err
	}
	return codes, fs.activity.record(ctx, s.Actor(), "recovery-codes.make", s.Email, nil)
}

// RecoveryCodesLeft returns the number of unused recovery codes.
func (fs *Factors) RecoveryCodesLeft(ctx context.Context, s Session) (int, error) {
	return fs.store.CountCodes(ctx, s.Person)
}

// use consumes a TOTP code or a recovery code, counting the attempt under the key counted. It
// returns [ErrCredentials] or a *[RateError].
func (fs *Factors) use(ctx context.Context, p pgaccount.Person, code, counted string) (recovery bool, err error) {
	if _, err := fs.limits.attempt(ctx, codeLimit, counted); err != nil {
		return false, err
	}
	fresh := false
	step, err := fs.stepOf(p.ID, p.Factor, code)
	switch {
	case err == nil:
		fresh, err = fs.store.UseStep(ctx, p.ID, step)
	case errors.Is(err, ErrCredentials):
		recovery = true
		fresh, err = fs.store.UseCode(ctx, p.ID, recoveryHash(p.ID, code))
	}
	if err != nil {
		return false, err
	}
	if !fresh {
		return false, ErrCredentials
	}
	return recovery, fs.limits.forget(ctx, codeLimit, counted)
}

// stepOf returns the time step of a code, or [ErrCredentials] if it belongs to no step near now.
func (fs *Factors) stepOf(person uuid.UUID, sealed []byte, code string) (int64, error) {
	secret, err := fs.sealer.Open(factorPurpose(person), sealed)
	if err != nil {
		return 0, fmt.Errorf("open second factor: %w", err)
	}
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	now := fs.now().Unix() / int64(factorStep/time.Second)
	found := int64(0)
	for step := now - factorSkew; step <= now+factorSkew; step++ {
		want, err := hotp.GenerateCodeCustom(plain32.EncodeToString(secret), uint64(step),
			hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}) //nolint:gosec // after 1970
		if err != nil {
			return 0, fmt.Errorf("compute code: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			found = step
		}
	}
	if found == 0 {
		return 0, ErrCredentials
	}
	return found, nil
}

// newCodes returns new recovery codes, such as "abcd-efgh-ijkl-mnop", and their hashes.
func (fs *Factors) newCodes(person uuid.UUID) (codes []string, hashes [][]byte, err error) {
	for range RecoveryCodes {
		b := make([]byte, recoverySize)
		if _, err := io.ReadFull(fs.random, b); err != nil {
			return nil, nil, fmt.Errorf("make recovery codes: %w", err)
		}
		code := strings.ReplaceAll(groups(strings.ToLower(plain32.EncodeToString(b))), " ", "-")
		codes, hashes = append(codes, code), append(hashes, recoveryHash(person, code))
	}
	return codes, hashes, nil
}

// recoveryHash returns the stored hash of a recovery code, ignoring case, spaces and hyphens.
func recoveryHash(person uuid.UUID, code string) []byte {
	code = strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(code))
	return hashOf("recovery\x00" + person.String() + "\x00" + code)
}
