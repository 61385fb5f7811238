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
	factorSize = 20 // bytes of the secret
	factorStep = 30 * time.Second
	factorSkew = 1 // accepted clock difference in steps
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
	QR     qrcode.Code // of the URL
}

// factorPurpose returns the purpose under which a person's TOTP secret is sealed.
func factorPurpose(person uuid.UUID) string { return "totp/" + person.String() }

// BeginFactor creates a second factor that a code must confirm. Until then the current one stays
// valid.
func (a *Accounts) BeginFactor(ctx context.Context, s Session) (Enrolment, error) {
	secret := make([]byte, factorSize)
	if _, err := io.ReadFull(a.Rand, secret); err != nil {
		return Enrolment{}, fmt.Errorf("make second factor: %w", err)
	}
	if err := a.Store.SetPendingFactor(ctx, s.Person, a.Sealer.Seal(factorPurpose(s.Person), secret)); err != nil {
		return Enrolment{}, mapError(err)
	}
	return a.enrolment(s.Email, secret)
}

// PendingFactor returns the second factor that waits for confirmation, or [ErrNotFound].
func (a *Accounts) PendingFactor(ctx context.Context, s Session) (Enrolment, error) {
	p, err := a.Store.Person(ctx, s.Person)
	if err != nil {
		return Enrolment{}, mapError(err)
	}
	if p.FactorPending == nil {
		return Enrolment{}, ErrNotFound
	}
	secret, err := a.Sealer.Open(factorPurpose(p.ID), p.FactorPending)
	if err != nil {
		return Enrolment{}, fmt.Errorf("open second factor: %w", err)
	}
	return a.enrolment(p.Email, secret)
}

func (a *Accounts) enrolment(email string, secret []byte) (Enrolment, error) {
	text := plain32.EncodeToString(secret)
	issuer := "Proofline"
	if u, err := url.Parse(a.URL); err == nil && u.Hostname() != "" {
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

// ConfirmFactor replaces the person's second factor by the pending one, given a code from it, and
// ends all other sessions. It returns the recovery codes, which are shown only once, and the
// session's new token. It returns [ErrCredentials] for a wrong code, [ErrNotFound] without a
// pending factor, or a *[RateError].
func (a *Accounts) ConfirmFactor(ctx context.Context, s Session, code string) (codes []string, token string,
	err error) {
	if _, err := a.attempt(ctx, codeLimit, s.Person.String()); err != nil {
		return nil, "", err
	}
	p, err := a.Store.Person(ctx, s.Person)
	if err != nil {
		return nil, "", mapError(err)
	}
	if p.FactorPending == nil {
		return nil, "", ErrNotFound
	}
	step, err := a.stepOf(p.ID, p.FactorPending, code)
	if err != nil {
		return nil, "", err
	}
	codes, hashes, err := a.newCodes(p.ID)
	if err != nil {
		return nil, "", err
	}
	if err := a.Store.EnableFactor(ctx, p.ID, p.FactorPending, step, hashes, s.ID); err != nil {
		return nil, "", mapError(err)
	}
	if err := a.factorChanged(ctx, s, "second-factor.enable"); err != nil {
		return nil, "", err
	}
	token, err = a.rotate(ctx, s.ID)
	return codes, token, err
}

// factorChanged resets the count of failed codes and logs the change.
func (a *Accounts) factorChanged(ctx context.Context, s Session, verb string) error {
	if err := a.Store.Forget(ctx, codeLimit.key(s.Person.String())); err != nil {
		return err
	}
	return a.record(ctx, s.Actor(), verb, s.Email, nil)
}

// RemoveFactor removes the second factor. It requires a code or recovery code, and the password if
// there is one.
func (a *Accounts) RemoveFactor(ctx context.Context, s Session, password, code string) error {
	if s.HasPassword {
		if err := a.checkOwnPassword(ctx, s, password); err != nil {
			return err
		}
	} else if !s.IsConfirmed(a.Now()) {
		return ErrForbidden
	}
	p, err := a.Store.Person(ctx, s.Person)
	if err != nil {
		return mapError(err)
	}
	if p.Factor == nil {
		return ErrNotFound
	}
	if _, err := a.useFactor(ctx, p, code, p.ID.String()); err != nil {
		return err
	}
	if err := a.Store.DisableFactor(ctx, p.ID); err != nil {
		return mapError(err)
	}
	return a.factorChanged(ctx, s, "second-factor.remove")
}

// NewRecoveryCodes replaces a person's recovery codes. Without a second factor it returns
// [ErrNotFound].
func (a *Accounts) NewRecoveryCodes(ctx context.Context, s Session) ([]string, error) {
	if !s.HasFactor {
		return nil, ErrNotFound
	}
	codes, hashes, err := a.newCodes(s.Person)
	if err != nil {
		return nil, err
	}
	if err := a.Store.SetCodes(ctx, s.Person, hashes); err != nil {
		return nil, err
	}
	return codes, a.record(ctx, s.Actor(), "recovery-codes.make", s.Email, nil)
}

// RecoveryCodesLeft returns the number of unused recovery codes.
func (a *Accounts) RecoveryCodesLeft(ctx context.Context, s Session) (int, error) {
	return a.Store.CountCodes(ctx, s.Person)
}

// useFactor consumes a TOTP code or a recovery code, counting the attempt under the key counted. It
// returns [ErrCredentials] or a *[RateError].
func (a *Accounts) useFactor(ctx context.Context, p pgaccount.Person, code, counted string) (recovery bool, err error) {
	if _, err := a.attempt(ctx, codeLimit, counted); err != nil {
		return false, err
	}
	fresh := false
	step, err := a.stepOf(p.ID, p.Factor, code)
	switch {
	case err == nil:
		fresh, err = a.Store.UseStep(ctx, p.ID, step)
	case errors.Is(err, ErrCredentials):
		recovery = true
		fresh, err = a.Store.UseCode(ctx, p.ID, recoveryHash(p.ID, code))
	}
	if err != nil {
		return false, err
	}
	if !fresh {
		return false, ErrCredentials
	}
	return recovery, a.Store.Forget(ctx, codeLimit.key(counted))
}

// stepOf returns the time step of a code, or [ErrCredentials] if it belongs to no step near now.
func (a *Accounts) stepOf(person uuid.UUID, sealed []byte, code string) (int64, error) {
	secret, err := a.Sealer.Open(factorPurpose(person), sealed)
	if err != nil {
		return 0, fmt.Errorf("open second factor: %w", err)
	}
	code = strings.ReplaceAll(strings.TrimSpace(code), " ", "")
	now := a.Now().Unix() / int64(factorStep/time.Second)
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
func (a *Accounts) newCodes(person uuid.UUID) (codes []string, hashes [][]byte, err error) {
	for range RecoveryCodes {
		b := make([]byte, recoverySize)
		if _, err := io.ReadFull(a.Rand, b); err != nil {
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
