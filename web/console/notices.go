package console

// notices are what pages say about what was done just now, by the word that is
// in their address.
var notices = map[string]string{
	"ended":                "The room has ended. Its transcript stays public.",
	"factor-removed":       "The second factor is removed. The password alone signs you in now.",
	"held":                 "Everybody is held. It stands in the public transcript.",
	"host-added":           "The host is added. Set the TXT record, then check it.",
	"host-removed":         "The host is given up.",
	"host-verified":        "The host is yours. Rooms can be published under it.",
	"left":                 "You have left the organization.",
	"member-removed":       "The member is removed.",
	"message-shown":        "Everybody in the line sees the message now.",
	"must-enrol":           "Your organization requires a second factor. Set one up to go on.",
	"name-changed":         "The name is changed.",
	"no-organization":      "You belong to no organization. Ask an owner for an invitation.",
	"organization-changed": "The organization is changed.",
	"outflow-changed":      "The outflow is changed. It stands in the public transcript.",
	"password-changed":     "The password is changed. All other sessions have ended.",
	"paused":               "The line is paused. It stands in the public transcript.",
	"rehearsal-started":    "The rehearsal begins in a few seconds.",
	"rehearsal-stopped":    "The rehearsal is stopped.",
	"resumed":              "The line goes on. It stands in the public transcript.",
	"revoked":              "The place is taken away. It stands in the public transcript.",
	"role-changed":         "The role is changed.",
	"session-ended":        "The session has ended.",
	"sessions-ended":       "All other sessions have ended.",
	"sign-in-late":         "The sign-in took too long, or was begun in another browser. Please start again.",
	"signed-out":           "You are signed out.",
	"token-revoked":        "The token is revoked. Other servers of yours refuse it within five seconds.",
	"uninvited":            "The invitation is taken back. Its link is void.",
}
