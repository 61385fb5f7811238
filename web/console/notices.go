package console

// notices are what pages say about what was done just now, by the word that is
// in their address.
var notices = map[string]string{
	"signed-out": "You are signed out.",
}
