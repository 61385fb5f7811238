package account

// What tests look at.
var (
	ParseHash       = parseHash
	PasswordProblem = passwordProblem
	NormalName      = normalName
	Device          = device
)

// Hash is a password's PHC string.
func (c Cost) Hash(password string, salt []byte) string { return c.hash(password, salt) }
