package setting

import (
	"net/mail"
	"net/url"
	"strings"
)

// maxAppeal is the maximum length of an appeal contact.
const maxAppeal = 500

// isAppeal reports whether visitors may be sent to a contact: a mail address, or a page.
func isAppeal(text string) bool { return text == "" || AppealURL(text) != "" }

const wantAppeal = "must be a mail address such as help@example.com, or an https URL, of at most 500 characters"

// AppealURL returns the link to an appeal contact; empty if it is none.
func AppealURL(contact string) string {
	if len(contact) > maxAppeal || strings.ContainsAny(contact, "\r\n") {
		return ""
	}
	if strings.HasPrefix(contact, "https://") {
		if u, ok := ParseTarget(contact); ok {
			return u.String()
		}
		return ""
	}
	a, err := mail.ParseAddress(contact)
	if err != nil || a.Address != contact || a.Name != "" {
		return ""
	}
	return "mailto:" + (&url.URL{Path: contact}).EscapedPath()
}
