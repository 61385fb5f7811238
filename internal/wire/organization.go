package wire

import (
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// Host is a custom host that the organization has claimed.
type Host struct {
	Host     string     `json:"host"`
	Record   string     `json:"record" doc:"Name of the TXT record that proves ownership."`
	Value    string     `json:"value" doc:"Content of the record."`
	Verified *time.Time `json:"verified" doc:"Time of verification. Null: not verified, or another organization has verified the host since."`
}

// HostList lists custom hosts.
type HostList struct {
	Hosts []Host `json:"hosts"`
}

// HostInput names a custom host to claim.
type HostInput struct {
	Host string `json:"host" need:"true" doc:"A host name, without port."`
}

// Member is a member of the organization.
type Member struct {
	ID        uuid.UUID `json:"id" doc:"ID of the person."`
	Email     string    `json:"email"`
	Name      string    `json:"name"`
	Role      string    `json:"role" enum:"owner,operator,viewer"`
	HasFactor bool      `json:"has_second_factor"`
	Since     time.Time `json:"since"`
}

// MemberList lists the members of an organization.
type MemberList struct {
	Members []Member `json:"members"`
}

// RoleInput changes a member's role.
type RoleInput struct {
	Role account.Role `json:"role" need:"true" enum:"owner,operator,viewer"`
}

// Invitation is an open invitation.
type Invitation struct {
	ID        uuid.UUID `json:"id"`
	Email     string    `json:"email" doc:"Empty: the link works for anyone who has it."`
	Role      string    `json:"role" enum:"owner,operator,viewer"`
	InvitedBy string    `json:"invited_by"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
}

// InvitationList lists open invitations.
type InvitationList struct {
	Invitations []Invitation `json:"invitations"`
}

// InvitationInput invites a person.
type InvitationInput struct {
	Email string       `json:"email" need:"true"`
	Role  account.Role `json:"role" need:"true" enum:"owner,operator,viewer"`
}

// Invited is a new invitation.
type Invited struct {
	Link   string `json:"link" doc:"One-time link by which the invited person becomes a member. It is shown once."`
	Mailed bool   `json:"mailed" doc:"Whether it was sent by mail; if not, pass it on yourself."`
}

// Organization is an organization.
type Organization struct {
	ID            uuid.UUID `json:"id"`
	Slug          string    `json:"slug"`
	Name          string    `json:"name"`
	RequireFactor bool      `json:"require_second_factor" doc:"Whether members need a second factor."`
	Created       time.Time `json:"created"`
	HasLogo       bool      `json:"has_logo" doc:"Whether the organization has a logo, which rooms without their own show."`
}

// OrganizationList lists organizations.
type OrganizationList struct {
	Organizations []Organization `json:"organizations"`
}

// OrganizationInput describes a new organization.
type OrganizationInput struct {
	Slug string `json:"slug" need:"true" doc:"1 to 63 of a-z, 0-9 and -."`
	Name string `json:"name" need:"true"`
}

// OrganizationChangeInput changes an organization. Missing members stay unchanged.
type OrganizationChangeInput struct {
	Name          *string `json:"name"`
	RequireFactor *bool   `json:"require_second_factor" doc:"Whether members need a second factor."`
	Logo          *string `json:"logo" doc:"Logo for rooms without their own: data URL of a PNG, JPEG or WebP image of at most 64 KiB. Empty: none."`
}

// OwnerLinkInput is the request for a link that makes a person an owner.
type OwnerLinkInput struct {
	Email string `json:"email" doc:"E-mail address of the person that the link is for, who can set a new password with it. Empty: the link works for anyone who has it."`
}

// SignInLinkInput is the request for a sign-in link.
type SignInLinkInput struct {
	Email string `json:"email" doc:"E-mail address of the person that the link is for."`
}

// Link is a one-time link, which is shown only once.
type Link struct {
	Link string `json:"link" doc:"One-time link. It is shown once."`
}

// Token is a token of the organization, without its secret.
type Token struct {
	ID      uuid.UUID  `json:"id"`
	Name    string     `json:"name"`
	Scopes  []string   `json:"scopes" doc:"Scopes: any of read, pull, connect, operate and admin."`
	MadeBy  string     `json:"made_by"`
	Created time.Time  `json:"created"`
	Expires time.Time  `json:"expires"`
	Used    *time.Time `json:"used" doc:"Time of the latest use, to the minute; null: never."`
	Notice  string     `json:"notice,omitempty" enum:"soon,last,ended" doc:"For a token in use: it expires within two weeks, within three days, or has expired within the last week. An alert is sent for each."`
}

// TokenList lists the tokens of an organization.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// TokenInput describes a new token.
type TokenInput struct {
	Name   string         `json:"name" need:"true"`
	Scopes []string       `json:"scopes" need:"true" doc:"Any of read, pull, connect, operate and admin that the requesting token has. Operate implies connect, pull and read; admin implies all."`
	Life   *room.Duration `json:"life" doc:"Lifetime, at most a year. Default: 90 days."`
}

// MadeToken is a new token with its secret.
type MadeToken struct {
	Token
	Secret string `json:"token" doc:"Bearer token. It is shown once."`
}

// MaxQuota is the largest quota.
const MaxQuota = 1_000_000_000_000

// QuotaInput is what an organization may use at most.
type QuotaInput struct {
	Rooms   uint64 `json:"rooms" doc:"Rooms that have not ended, with drafts left out. 0: no limit."`
	Waiting uint64 `json:"waiting" doc:"Visitors in line in all rooms together. 0: no limit."`
	Streams uint64 `json:"streams" doc:"Event streams open at each server. 0: no limit."`
	Entries uint64 `json:"entries" doc:"Entries of all transcripts, three or four for each visitor. 0: no limit."`
}

// QuotaUsage is the quota of an organization, and its use.
type QuotaUsage struct {
	Rooms   Use `json:"rooms" doc:"Rooms that have not ended."`
	Waiting Use `json:"waiting" doc:"Visitors in line, as this server sees them. While the quota is used up, the rooms are full."`
	Streams Use `json:"streams" doc:"Event streams open at this server."`
	Entries Use `json:"entries" doc:"Entries of all transcripts. While the quota is used up, the rooms are full."`
}

// Use is how much of something is used.
type Use struct {
	Used uint64 `json:"used"`
	Most uint64 `json:"most" doc:"Quota; 0: no limit."`
}
