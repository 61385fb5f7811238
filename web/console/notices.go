package console

// notices are what pages say about what was done just now, by the word that is
// in their address.
var notices = map[string]string{
	"ended":           "The room has ended. Its transcript stays public.",
	"held":            "Everybody is held. It stands in the public transcript.",
	"message-shown":   "Everybody in the line sees the message now.",
	"outflow-changed": "The outflow is changed. It stands in the public transcript.",
	"paused":          "The line is paused. It stands in the public transcript.",
	"resumed":         "The line goes on. It stands in the public transcript.",
	"revoked":         "The place is taken away. It stands in the public transcript.",
	"signed-out":      "You are signed out.",
}
