package account

// Internals that tests use.
var (
	ParseHash       = parseHash
	PasswordProblem = passwordProblem
	NormalName      = normalName
	Device          = device
)

// Occupy takes all hashing places for unknown browsers until release is called.
func (a *Accounts) Occupy() (release func()) {
	for range cap(a.SignIns.passwords.unknown) {
		a.SignIns.passwords.unknown <- struct{}{}
	}
	return func() {
		for range cap(a.SignIns.passwords.unknown) {
			<-a.SignIns.passwords.unknown
		}
	}
}

// Hash returns the PHC string of a password.
func (c Cost) Hash(password string, salt []byte) string { return c.hash(password, salt) }
