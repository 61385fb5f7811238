package rooms

import (
	"strconv"
	"time"

	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
	"github.com/proofline/proofline/web/console/format"
)

// preset is a common kind of waiting room that a draft can start from.
type preset struct {
	Name    string
	Title   string
	Suits   string        // the audience, in a sentence
	bots    string        // what a bot gains, if that cannot be simulated
	early   time.Duration // from the opening to the start
	short   bool          // joining ends at the start
	windows []presetWindow
	net     *netPreset // settings of a safety net; nil: not a safety net
	door    *door      // what a join needs; nil: nothing
}

// netPreset holds the initial settings of a safety net. At that rate, if visitors browse for five minutes and then
// let their sessions expire, about as many sessions are live as the limit allows.
type netPreset struct {
	perMinute, maxActive int
	session              time.Duration
}

// IsNet reports whether the preset is a safety net.
func (p preset) IsNet() bool { return p.net != nil }

// presetWindow starts windows of one length, at a time after the opening.
type presetWindow struct{ from, length time.Duration }

const halfHour = 30 * time.Minute

// presets are all presets in display order.
var presets = []preset{
	{
		Name: "draw-then-minutes", Title: "Draw until the start, then by the minute",
		Suits: "Most sales: no visitor has to arrive at an exact second, and later arrivals still queue in order.",
		early: halfHour, windows: []presetWindow{{0, halfHour}, {halfHour, time.Minute}},
	},
	{
		Name: "draw-then-queue", Title: "Draw until the start, then first come, first served",
		Suits: "Audiences used to other waiting rooms: everyone who arrives before the start has an equal chance; later " +
			"arrivals queue behind them.",
		early: halfHour, windows: []presetWindow{{0, halfHour}, {halfHour, 100 * time.Millisecond}},
	},
	{
		Name: "minutes", Title: "Windows of a minute",
		Suits: "Releases at a fixed time, with no line before it: a slow connection costs nothing, and arriving a " +
			"minute later costs a minute.",
		windows: []presetWindow{{0, time.Minute}},
	},
	{
		Name: "queue", Title: "First come, first served",
		Suits:   "Sites that are full now and then, with no fixed time that visitors wait for.",
		windows: []presetWindow{{0, 100 * time.Millisecond}},
	},
	{
		Name: "one-draw", Title: "One big draw",
		Suits: "A lottery: visitors enter within a day, and it does not matter when. Limit entries per person at the shop.",
		early: 24 * time.Hour, short: true, windows: []presetWindow{{0, 24 * time.Hour}},
	},
	{
		Name: safetyNet, Title: "Safety net",
		Suits: "Sites that are open all year: visitors wait only while more arrive than the site can serve. The line " +
			"begins and ends automatically.",
		bots:    "A bot gains ten seconds at most while there is a line.",
		windows: []presetWindow{{0, 10 * time.Second}},
		net:     &netPreset{perMinute: 300, maxActive: 5000, session: 10 * time.Minute},
	},
	doorPreset("members-only", "Members only",
		"Fan clubs, associations and subscribers: each member confirms the membership once and gets one place. "+
			"Others cannot join.",
		door{kind: simulate.Accounts, method: "members", shows: "membership"}),
	doorPreset("one-place-per-account", "One place per account",
		"Shops whose customers have accounts: each account gets one place, however many tickets somebody asks for. "+
			"It is worth as much as it takes to open another account.",
		door{kind: simulate.Accounts, method: "account", shows: "account",
			own: map[string]string{
				setting.OwnOIDCKey: "Sales for people with an account at this server’s sign-in provider: each account gets one " +
					"place, however many tickets somebody asks for. It is worth as much as it takes to open another account there.",
				setting.OwnMailKey: "Sales for everyone, without accounts or codes: each email address gets one place, however " +
					"many tickets somebody asks for. It is worth as much as it takes to get another address, which some providers " +
					"give away.",
			}}),
	doorPreset("presale-codes", "Presale codes",
		"Presales for people whom you invite: you print or send 500 codes, and each is good for one place. You can "+
			"change the number until you publish the room.",
		door{kind: simulate.Codes, method: "presale", shows: "code", codes: 500}),
	doorPreset("open-with-work", "Open, with a cost for bots",
		"Sales for everyone, without accounts or codes: each device computes for a few seconds before it joins. "+
			"That slows a script down; it does not stop one who rents computers.",
		door{kind: simulate.Work, method: "work"}),
}

// safetyNet is the name of the preset for safety nets.
const safetyNet = "safety-net"

func findPreset(name string) (preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			return p, true
		}
	}
	return preset{}, false
}

// form returns the initial form. The room starts at the first full hour that is at least a day away.
func (p preset) form(now time.Time, beacon string) roomForm {
	starts := now.UTC().Add(24*time.Hour + time.Hour - 1).Truncate(time.Hour)
	opens := starts.Add(-p.early)
	var f roomForm
	f.set("opens", opens.Format(format.MomentLayout))
	f.set("starts", starts.Format(format.MomentLayout))
	f.set("outflow.per_minute", format.Number(room.DefaultPerMinute))
	f.set("claim", format.Duration(room.DefaultClaim))
	f.set("session", format.Duration(room.DefaultSession))
	f.set("beacon", beacon)
	if p.short {
		f.set("closes", f.Value("starts"))
	}
	if p.net != nil { // it is open from its publication until its end
		f.set("opens", "")
		f.set("starts", "")
		f.set("outflow.per_minute", strconv.Itoa(p.net.perMinute))
		f.set("outflow.max_active", strconv.Itoa(p.net.maxActive))
		f.set("session", format.Duration(p.net.session))
	}
	if p.door != nil {
		f.set("methods", p.door.line())
		f.set("lanes", string(fairness.General)+" 1 "+p.door.method)
	}
	for i, w := range p.windows {
		row := windowField{Length: format.Duration(w.length)}
		if i > 0 {
			row.From = opens.Add(w.from).Format(format.MomentLayout)
		}
		f.Windows = append(f.Windows, row)
	}
	return f
}

// bar is a window in a drawing, in percent of its width.
type bar struct {
	X, Width float64
	Late     bool // the window begins after the start
}

const (
	drawnSpan = 40 * time.Minute // the time span of a drawing
	leastGap  = 1.2
	leastBar  = 0.7
)

// Bars draws the windows of forty minutes, thirty of them before the start. Very short windows are drawn wide
// enough to be visible.
func (p preset) Bars() []bar {
	span := float64(drawnSpan)
	early := min(p.early, halfHour)
	offset := float64(halfHour - early)
	var list []bar
	for i, w := range p.windows {
		end := float64(drawnSpan)
		if p.short {
			end = float64(halfHour)
		}
		if i+1 < len(p.windows) {
			end = offset + float64(p.windows[i+1].from)
		}
		for at := offset + float64(w.from); at < end; {
			width := min(float64(w.length)/span*100, (end-at)/span*100)
			shown := min(max(width-leastGap, leastBar), 100-at/span*100)
			list = append(list, bar{X: at / span * 100, Width: shown, Late: at >= float64(halfHour)})
			at += max(width, leastBar+leastGap) / 100 * span
		}
	}
	return list
}
