package setting

import (
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/room/locale"
)

// Defaults of a new room.
const (
	DefaultNotice    = time.Minute
	DefaultClaim     = 5 * time.Minute
	DefaultGrace     = 20 * time.Second
	DefaultSession   = 15 * time.Minute
	DefaultMargin    = 5 * time.Second
	DefaultPerMinute = 60
	// DefaultMaxWaiting is the longest line that the benchmarks measure. Without a limit only the server's
	// memory would stop a flood of joins.
	DefaultMaxWaiting = 1_000_000
)

// Names that a [Source] may have: none, or a chain's name after the prefix.
const (
	NoBeacon    = fairness.NoBeacon
	ChainPrefix = "drand:"
)

// Limits of texts and lists.
const (
	MaxTitle   = 200 // characters
	maxSlug    = 63
	MaxJoins   = 10_000_000 // a minute
	MaxScore   = 100
	MaxTargets = 20
	MaxTarget  = 2_000 // characters
)

var slugForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// IsSlug reports whether a text can be a room's slug.
func IsSlug(text string) bool { return slugForm.MatchString(text) }

// table lists all settings of a room, in the order of forms, plans and documents.
var table = []Setting{
	{
		Name: "slug", Change: Never,
		Kind: Text{Max: maxSlug, Check: IsSlug,
			Wants: "must be 1 to 63 of a-z, 0-9 and '-', not beginning or ending with '-'"},
		Label: "Address, last part", Help: "name in the address: 1 to 63 of a-z, 0-9 and -", Default: "required",
		Form: Form{Group: "address", Hint: "Letters a-z, digits and '-'. It cannot change once the room is published."},
	},
	{
		Name: "title", Change: Free, Kind: Text{Max: MaxTitle},
		Label: "Title", Help: "title that visitors see", Default: "the slug",
		Form: Form{Group: "title", Hint: "What visitors read at the top of the page."},
	},
	{
		Name: "opens", Change: Never, Kind: Time{},
		Label: "Opens", Help: "time at which joins begin", Default: "start of the first window, or at once",
		Form: Form{Group: "times", Hint: "From then on visitors can join.", Empty: "when it is published"},
		Row:  Row{Label: "opens"},
	},
	{
		Name: "starts", Change: Never, Kind: Time{},
		Label: "Starts", Help: "time at which calls begin", Default: "`opens`",
		Form: Form{Group: "times", Hint: "From then on visitors are let in.", Empty: "when it opens"},
		Row:  Row{Label: "starts"},
	},
	{
		Name: "closes", Change: Recorded, Kind: Time{},
		Label: "Closes", Help: "time at which joins end", Default: "never",
		Note: "A closing time can be moved, but not removed.",
		Form: Form{Group: "times", Hint: "From then on visitors cannot join.", Empty: "when you end it"},
		Row:  Row{Label: "closes", None: "never"},
	},
	windows,
	{
		Name: "slots", Change: Never, Kind: between(1, fairness.MaxWindow),
		Label: "Slots of the first window",
		Help: "length of the slots that cut the first window, 2 to 64 of them: each is shuffled alone, and they take turns, " +
			"so that fewer people in a slot get better places; such a first window cannot change",
		Default: "none",
		Form: Form{Group: "slots", Empty: "none", Placeholder: "none",
			Hint: "For a long first window: visitors spread over it, because a quiet slot gives better places: " +
				"twice the chance to be among the first with half as many people, and far more if nearly all come in one slot."},
		Row: Row{Label: "slots", Format: "of %s in the first window"},
	},
	methods,
	lanes,
	lots,
	issuers,
	{
		Name: "notice", Change: Never, Kind: between(fairness.MinNotice, fairness.MaxNotice),
		Label:   "Notice of changed windows",
		Help:    "windows that begin sooner than this after a change of the schedule stay as they are",
		Default: "1m", Initial: "1m",
		Form: Form{Group: "times", Hint: "So long before its close a room can be extended at the latest.",
			Empty: "1 min", Placeholder: "1 min"},
		Row: Row{Label: "windows", Format: "changed at least %s before they begin"},
	},
	{
		Name: "party", Change: Never, Kind: Number{Max: fairness.MaxParty},
		Label: "Seats per visitor", Help: "seats that a visitor may join for at most; 0 and 1: one seat", Default: "0", Initial: 0,
		Form: Form{Group: "seats", Empty: "one", Placeholder: "1",
			Hint: "A party has one place in line, and counts with its seats for the outflow and the number of seats."},
		Row: Row{Label: "seats", Format: "at most %s for one visitor"},
	},
	{
		Name: "seats", Change: Recorded, Kind: anyNumber,
		Label: "Seats",
		Help: "seats of called and admitted visitors at most; " +
			"no-shows and visitors who leave give theirs back; 0: any number",
		Default: "0", Initial: 0,
		Note: "It cannot be less than what is called or admitted, or be set in a room that began without it.",
		Form: Form{Group: "seats", Empty: "any number", Placeholder: "any number",
			Hint: "No more are called. What was admitted but not bought can be added again."},
		Row: Row{Label: "seats", Format: "%s in all"},
	},
	{
		Name: "outflow", Change: Recorded, Label: "How fast people are let in",
		Kind: Object{Split: true, Members: []Setting{perMinute, maxActive}},
	},
	{
		Name: "claim", Change: Never, Kind: between(fairness.MinClaim, fairness.MaxClaim),
		Label: "Time to go in", Help: "time that a called visitor has to claim",
		Default: "5m", Initial: "5m",
		Form: Form{Group: "turn", Hint: "A called visitor has this long; then the next one is called.",
			Placeholder: "5 min"},
		Row: Row{Label: "claim", Format: "within %s"},
	},
	{
		Name: "extend", Change: Never, Kind: between(fairness.MinClaim, fairness.MaxClaim),
		Label:   "More time on request",
		Help:    "how much more time to claim a called visitor gets who asks for it, once and without giving a reason",
		Default: "none",
		Form: Form{Group: "turn", Hint: "A visitor who needs longer can ask for it once, through an app.",
			Empty: "none", Placeholder: "none"},
		Row: Row{Label: "claim", Format: "%s more on request, once"},
	},
	{
		Name: "grace", Change: Never, Kind: between(fairness.MinGrace, fairness.MaxGrace),
		Label: "Grace in an outage",
		Help: "how long the time to claim runs on at most while the server is down and writes nothing; " +
			"after that it stands still until the server is back",
		Default: "20s", Initial: "20s",
		Form: Form{Group: "turn", Hint: "If the server is down for longer, called visitors lose no more than this.",
			Empty: "20 s", Placeholder: "20 s"},
		Row: Row{Label: "claim", Format: "%s at most of an outage count"},
	},
	{
		Name: "session", Change: Never, Kind: between(fairness.MinSession, fairness.MaxSession),
		Label: "Time in the shop",
		Help: "length of a session after the admission or its latest touch, at most four times as long altogether; " +
			"a pass must be redeemed in this time, and within five minutes",
		Default: "15m", Initial: "15m",
		Form: Form{Group: "turn", Hint: "How long an admitted visitor counts for the limit. " +
			"Visitors who do not reach the shop in five minutes lose their place.", Placeholder: "15 min"},
		Row: Row{Label: "session"},
	},
	{
		Name: "beacon", Change: Never, Kind: Source{},
		Label: "Beacon",
		Help: "source of public randomness for draws: a drand chain for which the server has relays, " +
			"such as `drand:quicknet`, or `none`",
		Default: "the server's first chain; required while no relay answers; `none` on a server without relays",
		Form:    Form{Group: "proof"},
		Row:     Row{Label: "beacon"},
	},
	{
		Name: "margin", Change: Never, Kind: between(fairness.MinMargin, fairness.MaxMargin),
		Label:   "Margin before the beacon's round",
		Help:    "minimum time between a freeze and the beacon's round; positions are known that much later",
		Default: "5s", Initial: "5s",
		Form: Form{Group: "proof", Hint: "Time for witnesses to sign.", Empty: "5 s", Placeholder: "5 s"},
		Row:  Row{Label: "beacon", Format: "a round at least %s after the freeze"},
	},
	{
		Name: "quorum", Change: Never, Kind: Number{Max: fairness.MaxWitnesses},
		Label: "Witnesses who should sign",
		Help: "number of the server's witnesses that should sign each freeze before its round: " +
			"more than half of them, or 0 for no witnesses",
		Default: "more than half of them",
		Form:    Form{Group: "proof", Empty: "more than half of them"},
		Row:     Row{Label: "witnesses", Format: "%s or more should cosign each freeze"},
	},
	{
		Name: "max_waiting", Change: Free, Kind: anyNumber,
		Label:   "Maximum number of people in line",
		Help:    "approximate maximum number of visitors in line; 0: no limit",
		Default: "1000000", Initial: DefaultMaxWaiting,
		Form: Form{Group: "line", Placeholder: "1,000,000",
			Hint: "When the line is full, visitors are turned away without a place. 0: no limit."},
		Row: Row{Label: "in line", Format: "at most %s"},
	},
	{
		Name: "joins_per_minute", Change: Free, Kind: Number{Max: MaxJoins},
		Label: "People who can join per minute",
		Help: "maximum number of joins a minute on each server, as many at once; others get a page that tries again; " +
			"0: no limit",
		Default: "0",
		Form: Form{Group: "line", Placeholder: "no limit", Empty: "no limit",
			Hint: "A draw is as fair without it: it protects what is behind the line, such as a sign-in. 0: no limit."},
		Row: Row{Label: "joins", Format: "at most %s a minute"},
	},
	{
		Name: "min_score", Change: Free, Kind: Number{Max: MaxScore},
		Label: "Lowest score of a bot tool",
		Help: "score of a bot tool in front, 0 to 100, below which a join is refused, see docs/EDGE.md; " +
			"0: no join is refused for its score",
		Default: "0",
		Form: Form{Group: "line", Placeholder: "none", Empty: "none",
			Hint: "For a server behind a bot tool that rates visitors from 0, a program, to 100, a person. 0: none is refused."},
		Row: Row{Label: "joins", Format: "only with a score of at least %s, if there is one"},
	},
	{
		Name: "time_zone", Change: Free, Kind: Zone{},
		Label: "Time zone of the event",
		Help: "time zone of the event, such as `Europe/Vienna`: " +
			"reports, and pages without scripts, give times in it", Default: "UTC",
		Form: Form{Group: "zone", Placeholder: "UTC", Hint: "Such as Europe/Vienna. " +
			"The audit report gives times in it, and so do visitors' pages without scripts.", Empty: "UTC"},
		Row: Row{Label: "time zone"},
	},
	{
		Name: "targets", Change: Free,
		Kind:  List{Each: Text{Check: isTarget, Wants: wantTarget}, Max: MaxTargets, Wants: "must be a list of URLs"},
		Label: "Addresses of the shop",
		Help:  "URLs that admitted visitors may be sent to; the first is the default", Default: "none",
		Form: Form{Group: "shop", Placeholder: "https://shop.example.com/tickets",
			Hint: "One per line. Visitors are sent to the first one by default, or to a page below any of them."},
		Row: Row{Label: "target"},
	},
	{
		Name: "signed_return", Change: Free, Kind: Flag{},
		Label: "Only send people back to pages whose links a connector has signed",
		Help: "whether admitted visitors are sent only to URLs that a connector has signed, " +
			"otherwise to the first of `targets`", Default: "`false`",
		Form: Form{Group: "shop", Hint: "All other links lead to the first address. So an attacker's link cannot " +
			"bring a pass to a page that might log it or redirect to another site. " +
			"For sites whose connectors have a token."},
		Row: Row{Label: "return URL", Format: "only if a connector has signed it, else the first target"},
	},
	{
		Name: "appeal", Change: Free, Kind: Text{Max: maxAppeal, Check: isAppeal, Wants: wantAppeal},
		Label:   "Contact for appeals",
		Help:    "mail address or https URL to which visitors can turn whose place was revoked; their page shows it",
		Default: "none",
		Form: Form{Group: "line", Placeholder: "help@example.com", Empty: "none",
			Hint: "A mail address, or a page that begins with https://. Visitors whose place you revoke see it next to " +
				"the reason."},
		Row: Row{Label: "appeals", Format: "to %s"},
	},
	{
		Name: "brand", Change: Free, Kind: brand, Label: "Brand",
		Help: "appearance of the pages: `logo` (data URL; without one, the organization's), `color`, `background`, " +
			"`dark`, `texts`, `languages`, `font`, `corners` and `css`; THEMING.md describes them",
		Default: "Proofline's", Note: "A brand is replaced as a whole.",
	},
}

var windows = Setting{
	Name: "windows", Change: Recorded,
	Kind: Windows{Objects{Wants: `must be a list of {"from": time, "length": duration}`, Members: []Setting{
		{Name: "from", Kind: Time{}, Help: "time from which on windows have this length",
			Default: "for the first one, `opens`"},
		{Name: "length", Kind: between(fairness.MinWindow, fairness.MaxWindow), Help: "length of each window"},
	}}},
	Label:   "Windows",
	Help:    "list of `{\"from\": time, \"length\": duration}`: from each time on, consecutive windows of that length",
	Default: "one window until `starts`, then one per minute",
	Note:    "The list replaces the windows from its first time on.",
	Row:     Row{Label: "windows"},
}

var methods = Setting{
	Name: "methods", Change: Never,
	Kind: Methods{Objects{Wants: `must be a list of {"name": text, "kind": text, "bits": number, "key": text, ` +
		`"limit": number}`, Members: []Setting{
		{
			Name: "name", Kind: Text{Check: isMethod, Wants: "must be 1 to 32 of a-z, 0-9 and '-', and not '-'"},
			Help: "name of the method", Label: "Name",
			Form: Form{Placeholder: "presale", Hint: "Lanes and lots refer to it: a-z, 0-9 and '-'."},
		},
		{
			Name: "kind", Kind: Text{Check: isMethodKind, Wants: "must be work, signed or blind"},
			Help: "`work`, `signed` or `blind`", Label: "Kind",
			Form: Form{Hint: "signed: the issuer vouches for one ticket. blind: it cannot link ticket and account. " +
				"work: the visitor's device computes."},
		},
		{
			Name: "bits", Kind: Number{Max: credential.MaxBits},
			Help:  "for `work`: zero bits that a visitor's device searches for, 1 to 40; each one doubles the work",
			Label: "Bits of work",
			Form: Form{Placeholder: "20",
				Hint: "1 to 40: " + workCosts(20) + " on average. Each more bit doubles that."},
		},
		{
			Name: "key",
			Kind: Text{Check: isKey, Wants: "must be in lower-case hex, or one of " + strings.Join(OwnKeys, ", ")},
			Help: "issuer's public key in lower-case hex: for `signed` Ed25519, 32 bytes; " +
				"for `blind` an RSA modulus of 256 to 512 bytes. `own`: a key of the server's own issuer, for which " +
				"codes can be made once the room exists; `own-puzzle`, for `signed`: the key with which it confirms that a " +
				"visitor has solved a small puzzle; `own-captcha`, for `signed`: that a visitor has solved the check of the " +
				"CAPTCHA service of `proofline serve --captcha`; `own-mail`: that a visitor has received a code at an address, " +
				"sent by the server of `proofline serve --smtp`; `own-oidc`: that a visitor has signed in at the provider of " +
				"`proofline serve --issuer-oidc`",
			Label: "Who confirms visitors",
			Form:  Form{Hint: "In lower-case hex, as proofline issuer methods prints it."},
		},
		{
			Name: "limit", Kind: anyNumber,
			Help:  "for `signed` and `blind`: credentials that the room takes at most; 0: any number",
			Label: "At most", Form: Form{Placeholder: "any number", Hint: "Tickets that can show it. 0: any number."},
		},
	}}},
	Label: "Methods",
	Help: "list of `{\"name\": text, \"kind\": text, ...}`: ways to show something about a visitor, which lanes may " +
		"need: proof of work with `bits`, or an issuer's signature, `signed` or `blind`, with its `key` and a `limit`; " +
		"`proofline issuer` prints what it offers, and the keys `own`, `own-puzzle`, `own-captcha`, `own-mail` and `own-oidc` " +
		"are of the server's own issuer",
	Default: "none",
	Form: Form{Group: "methods", Placeholder: "presale signed own 5000", Empty: "none",
		Hint: "One per line: a name, signed or blind, the issuer's key or one of " + strings.Join(OwnKeys, ", ") + ", and how " +
			"many credentials the room takes at most. Or a name, work, and its bits."},
	Row: Row{Label: "method"},
}

var lanes = Setting{
	Name: "lanes", Change: Never,
	Kind: Objects{Wants: `must be a list of {"name": text, "weight": number, "needs": list}`, Members: []Setting{
		{
			Name: "name", Kind: Text{Check: fairness.IsLane, Wants: "must be 1 to 32 of a-z, 0-9 and '-'"},
			Help: "name of the lane",
		},
		{
			Name: "weight", Kind: Number{Min: 1, Max: fairness.MaxWeight},
			Help: "share of the calls, relative to the other lanes",
		},
		{
			Name: "needs",
			Kind: methodNames(fairness.MaxMethods),
			Help: "names of the methods that every visitor of the lane shows, in the order of `methods`",
			Row:  Row{Format: "needs %s"},
		},
	}},
	Label: "Lanes",
	Help: "list of `{\"name\": text, \"weight\": number, \"needs\": list}`: parallel lines, which share the calls by " +
		"weight; a visitor of a lane shows the methods that it `needs`; visitors who name none join the first",
	Default: "one, `general`",
	Form: Form{Group: "lanes", Placeholder: "general 1", Empty: "one line",
		Hint: "One per line: a name, a weight and, separated by commas, the methods that its visitors need. Lanes are " +
			"called in turn: one of weight 3 gets three places for each place of one of weight 1, while both have people."},
	Row: Row{Label: "lanes"},
}

var lots = Setting{
	Name: "lots", Change: Never, Kind: methodNames(fairness.MaxLots),
	Label: "Lots for credentials",
	Help: "names of at most 3 methods, in the order of `methods` and none of them `work`, each of which gives a visitor who " +
		"shows it one more lot in the draw, at the join or until the window ends",
	Default: "none",
	Form: Form{Group: "lanes", Placeholder: "club", Empty: "none",
		Hint: "One per line. A visitor with two lots is ahead of one with one lot in two of three draws. The methods that a " +
			"lane needs are shown by all of its visitors, so that a lot for them changes nothing."},
	Row: Row{Label: "lots", Format: "one more for %s"},
}

var perMinute = Setting{
	Name: "per_minute", Change: Recorded, Kind: Number{Min: 1, Max: fairness.MaxRate},
	Label: "People per minute", Help: "admissions per minute; no-shows are compensated for",
	Default: "60", Initial: DefaultPerMinute,
	Form: Form{Group: "pace", Hint: "How many are let in per minute. If a called visitor does not come, " +
		"the next one is called."},
	Row: Row{Label: "outflow", Format: "%s a minute"},
}

var maxActive = Setting{
	Name: "max_active", Change: Recorded, Kind: anyNumber,
	Label: "At most at once", Help: "visitors called or admitted at the same time; 0: no limit",
	Default: "0", Initial: 0,
	Form: Form{Group: "pace", Hint: "People in the shop at the same time. 0: no limit.", Placeholder: "no limit"},
	Row:  Row{Label: "outflow", Format: "at most %s at once", None: "any number at once"},
}

// Message is the message to visitors. Only amendments have it: a new room has none.
var Message = Setting{
	Name: "message", Change: Recorded, Label: "Message",
	Help: "message to visitors; null removes it",
	Kind: Object{Null: true, Members: []Setting{
		{Name: "default", Kind: Text{}},
		{Name: "texts", Kind: Map{
			Wants: `must be an object with a text for each language, such as {"en": "We are late."}`}},
		{Name: "until", Kind: Time{}},
		{Name: "for", Kind: Duration{}},
	}},
}

// brand is the look of a room's pages.
var brand = Brand{Object{Members: append(scheme(),
	Setting{Name: "dark", Kind: Object{Members: scheme()}, Help: "settings that differ in dark mode"},
	Setting{Name: "texts", Kind: Object{Members: translated()}, Help: "texts by language"},
	Setting{Name: "languages", Kind: List{Wants: "must be a list of languages such as en"},
		Help: "languages that visitors can choose; the first is the default; empty: all"},
	Setting{Name: "font", Kind: Text{}},
	Setting{Name: "corners", Kind: Text{}},
	Setting{Name: "css", Kind: Text{}, Help: "custom CSS, in the subset that THEMING.md describes"},
)}}

func isMethod(name string) bool { return fairness.IsLane(name) && name != "-" } // methods are named like lanes

// methodNames returns the kind of a list of methods' names.
func methodNames(most int) List {
	return List{Each: Text{Check: isMethod, Wants: "must be the name of a method"}, Max: most,
		Wants: "must be a list of names of methods"}
}

func isMethodKind(kind string) bool {
	k := credential.Kind(kind)
	return k == credential.Work || k == credential.Signed || k == credential.Blind
}

func isKey(text string) bool {
	return IsOwnKey(text) || strings.Trim(text, "0123456789abcdef") == "" && len(text)%2 == 0
}

func scheme() []Setting {
	return []Setting{
		{Name: "logo", Kind: Text{}, Help: "data URL of a PNG, JPEG or WebP image of at most 64 KiB"},
		{Name: "color", Kind: Text{}, Help: "colour of buttons and links, #rrggbb"},
		{Name: "background", Kind: Text{}, Help: "background colour, #rrggbb"},
	}
}

// translated returns the member for the organizer's texts in each language of the pages.
func translated() []Setting {
	var texts, languages []Setting
	for _, name := range []string{"headline", "intro", "help", "help_url", "footer", "privacy_url", "imprint_url"} {
		texts = append(texts, Setting{Name: name, Kind: Text{}})
	}
	for _, tag := range locale.Tags() {
		languages = append(languages, Setting{Name: tag, Kind: Object{Members: texts}})
	}
	return languages
}

// between returns the kind of a duration with bounds from the rules.
func between(shortest, longest fairness.Millis) Duration {
	return Duration{time.Duration(shortest) * time.Millisecond, time.Duration(longest) * time.Millisecond}
}

// anyNumber is the kind of every number that a room's JSON can hold.
var anyNumber = Number{Max: math.MaxUint32}
