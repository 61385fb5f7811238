package account

// Internals that tests use.
var (
	ParseHash       = parseHash
	PasswordProblem = passwordProblem
	NormalName      = normalName
	Device          = device
)

// Hash returns the PHC string of a password.
func (c Cost) Hash(password string, salt []byte) string { return c.hash(password, salt) }
