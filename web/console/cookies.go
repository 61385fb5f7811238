package console

import "time"

// Cookies that only this host can set, because of their prefix.
const (
	pendingCookie    = "__Host-proofline.pending"    // token of a sign-in that needs a code
	oidcCookie       = "__Host-proofline.oidc"       // state of a sign-in at the identity provider
	oidcNextCookie   = "__Host-proofline.oidc-next"  // the page to show after it
	invitationCookie = "__Host-proofline.invitation" // token of an opened link
)

// invitationAge is how long a browser keeps the token of a link.
const invitationAge = time.Hour
