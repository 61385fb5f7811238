package fairness

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyWithoutProblems(t *testing.T) {
	for name, change := range map[string]func(*Policy){
		"as it is":           func(*Policy) {},
		"never closes":       func(p *Policy) { p.Closes = Never },
		"starts at opening":  func(p *Policy) { p.Starts = p.Opens },
		"starts after close": func(p *Policy) { p.Starts = p.Closes + 1 },
		"created at opening": func(p *Policy) { p.Created = p.Opens },
		"odd key byte":       func(p *Policy) { p.VRFKey[0] = 3 },
		"short extension":    func(p *Policy) { p.Extend = MinClaim },
		"no active limit":    func(p *Policy) { p.Outflow.MaxActive = 0 },
		"all at their least": func(p *Policy) {
			p.Created, p.Opens, p.Starts, p.Closes = 0, 0, 0, 1
			p.Windows = []WindowRule{{0, MinWindow}}
			p.Notice, p.Outflow.PerMinute, p.Claim, p.Grace, p.Session = MinNotice, 1, MinClaim, MinGrace, MinSession
			p.Origin, p.LogKey = "a", "a+"
		},
		"all at their most": func(p *Policy) { *p = largestPolicy() },
	} {
		t.Run(name, func(t *testing.T) {
			p := testPolicy()
			change(&p)
			before := p
			if problems := p.Problems(); problems != nil {
				t.Errorf("got %v", problems)
			}
			if diff := cmp.Diff(before, p); diff != "" {
				t.Errorf("the policy changed:\n%s", diff)
			}
		})
	}
}

// largestPolicy has every field at its limit.
func largestPolicy() Policy {
	p := testPolicy()
	p.Origin = strings.Repeat("o", 255)
	p.LogKey = p.Origin + "+" + strings.Repeat("k", 1024-256)
	p.Created, p.Opens, p.Starts, p.Closes = Never-2000, Never-2000, Never-1, Never
	p.Outflow = Outflow{MaxRate, 1<<32 - 1}
	p.Notice, p.Claim, p.Extend, p.Grace, p.Session = MaxNotice, MaxClaim, MaxClaim, MaxGrace, MaxSession
	p.Windows = nil
	for i := range MaxRules {
		p.Windows = append(p.Windows, WindowRule{p.Opens + Time(i), MaxWindow})
	}
	return p
}

// TestLargestEntriesFit checks that every valid policy and amendment is within the size limit of an entry.
func TestLargestEntriesFit(t *testing.T) {
	p := largestPolicy()
	for _, e := range []Entry{
		&Room{Policy: p},
		&Amend{Time: Never - 1, Change: ChangeWindows, Closes: Never - 1, Windows: p.Windows},
	} {
		text := AppendEntry(nil, e)
		if len(text) > MaxEntrySize {
			t.Errorf("%s has %d bytes, more than %d", KindOf(e), len(text), MaxEntrySize)
		}
		if _, err := ParseEntry(text); err != nil {
			t.Error(err)
		}
	}
}

func TestPolicyProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Policy)
		want   []string // fields
	}{
		"extension too short":      {func(p *Policy) { p.Extend = MinClaim - 1 }, []string{"extend"}},
		"extension too long":       {func(p *Policy) { p.Extend = MaxClaim + 1 }, []string{"extend"}},
		"origin empty":             {func(p *Policy) { p.Origin, p.LogKey = "", "+k" }, []string{"origin"}},
		"origin too long":          {func(p *Policy) { p.Origin = strings.Repeat("o", 256); p.LogKey = p.Origin + "+" }, []string{"origin"}},
		"origin with a space":      {func(p *Policy) { p.Origin, p.LogKey = "a b", "a b+k" }, []string{"origin", "log_key"}},
		"origin with a newline":    {func(p *Policy) { p.Origin, p.LogKey = "a\n", "a\n+k" }, []string{"origin", "log_key"}},
		"origin with a plus":       {func(p *Policy) { p.Origin, p.LogKey = "a+b", "a+b+k" }, []string{"origin"}},
		"origin beyond ASCII":      {func(p *Policy) { p.Origin, p.LogKey = "ä", "ä+k" }, []string{"origin", "log_key"}},
		"origin with a DEL":        {func(p *Policy) { p.Origin, p.LogKey = "a\x7f", "a\x7f+k" }, []string{"origin", "log_key"}},
		"log key of another":       {func(p *Policy) { p.LogKey = "other+k" }, []string{"log_key"}},
		"log key too long":         {func(p *Policy) { p.LogKey = p.Origin + "+" + strings.Repeat("k", 1024) }, []string{"log_key"}},
		"log key empty":            {func(p *Policy) { p.LogKey = "" }, []string{"log_key"}},
		"VRF key zero":             {func(p *Policy) { p.VRFKey = [PublicKeySize]byte{} }, []string{"vrf_key"}},
		"VRF key uncompressed":     {func(p *Policy) { p.VRFKey[0] = 4 }, []string{"vrf_key"}},
		"beacon of nothing":        {func(p *Policy) { p.Beacon = &Beacon{Margin: MinMargin} }, []string{"beacon"}},
		"beacon without id":        {func(p *Policy) { p.Beacon = quicknet(); p.Beacon.ID = "" }, []string{"beacon"}},
		"beacon of another key":    {func(p *Policy) { p.Beacon = quicknet(); p.Beacon.PublicKey[9] ^= 1 }, []string{"beacon"}},
		"margin too short":         {func(p *Policy) { p.Beacon = quicknet(); p.Beacon.Margin = MinMargin - 1 }, []string{"beacon.margin"}},
		"margin too long":          {func(p *Policy) { p.Beacon = quicknet(); p.Beacon.Margin = MaxMargin + 1 }, []string{"beacon.margin"}},
		"witnesses, no beacon":     {func(p *Policy) { witnessed(p, 1, 1); p.Beacon = nil }, []string{"witnesses"}},
		"witnesses, no quorum":     {func(p *Policy) { witnessed(p, 2, 0) }, []string{"quorum"}},
		"quorum of more":           {func(p *Policy) { witnessed(p, 2, 3) }, []string{"quorum"}},
		"quorum of half":           {func(p *Policy) { witnessed(p, 4, 2) }, []string{"quorum"}},
		"quorum without witnesses": {func(p *Policy) { p.Quorum = 1 }, []string{"quorum"}},
		"too many witnesses":       {func(p *Policy) { witnessed(p, MaxWitnesses+1, MaxWitnesses) }, []string{"witnesses"}},
		"a witness twice":          {func(p *Policy) { witnessed(p, 2, 2); p.Witnesses[1] = p.Witnesses[0] }, []string{"witnesses[1]"}},
		"one key, two names":       {func(p *Policy) { witnessed(p, 2, 2); p.Witnesses[1] = "other" + p.Witnesses[0] }, []string{"witnesses[1]"}},
		"a witness with a space":   {func(p *Policy) { witnessed(p, 1, 1); p.Witnesses[0] += " " }, []string{"witnesses[0]"}},
		"a witness of no key":      {func(p *Policy) { witnessed(p, 1, 1); p.Witnesses[0] = "name" }, []string{"witnesses[0]"}},
		"no lane":                  {func(p *Policy) { p.Lanes = nil }, []string{"lanes"}},
		"a party of one":           {func(p *Policy) { p.Party = 1 }, []string{"party"}},
		"too large a party":        {func(p *Policy) { p.Party = MaxParty + 1 }, []string{"party"}},
		"too many lanes":           {func(p *Policy) { p.Lanes = lanesOf(MaxLanes + 1) }, []string{"lanes"}},
		"one lane twice":           {func(p *Policy) { p.Lanes = []LaneRule{{General, 1, nil}, {"fast", 2, nil}, {General, 3, nil}} }, []string{"lanes[2].name"}},
		"a lane without a name":    {func(p *Policy) { p.Lanes[0].Name = "" }, []string{"lanes[0].name"}},
		"a lane with a dot":        {func(p *Policy) { p.Lanes[0].Name = "a.b" }, []string{"lanes[0].name"}},
		"a lane with a long name":  {func(p *Policy) { p.Lanes[0].Name = Lane(strings.Repeat("a", 33)) }, []string{"lanes[0].name"}},
		"a lane without weight":    {func(p *Policy) { p.Lanes[0].Weight = 0 }, []string{"lanes[0].weight"}},
		"a lane too heavy":         {func(p *Policy) { p.Lanes[0].Weight = MaxWeight + 1 }, []string{"lanes[0].weight"}},
		"created after opening":    {func(p *Policy) { p.Created = p.Opens + 1 }, []string{"opens"}},
		"created before 1970":      {func(p *Policy) { p.Created = -1 }, []string{"opens"}},
		"opens never":              {func(p *Policy) { p.Opens = Never; p.Windows[0].From = Never }, []string{"opens", "starts", "closes", "windows[0].from", "windows[1].from"}},
		"starts before opening":    {func(p *Policy) { p.Starts = p.Opens - 1 }, []string{"starts"}},
		"starts never":             {func(p *Policy) { p.Starts = Never }, []string{"starts"}},
		"closes at opening":        {func(p *Policy) { p.Closes = p.Opens }, []string{"closes", "windows[0].from", "windows[1].from"}},
		"closes after all time":    {func(p *Policy) { p.Closes = Never + 1 }, []string{"closes"}},
		"no window":                {func(p *Policy) { p.Windows = nil }, []string{"windows"}},
		"windows after opening":    {func(p *Policy) { p.Windows[0].From++ }, []string{"windows[0].from"}},
		"windows before opening":   {func(p *Policy) { p.Windows[0].From-- }, []string{"windows[0].from"}},
		"window too short":         {func(p *Policy) { p.Windows[1].Length = MinWindow - 1 }, []string{"windows[1].length"}},
		"window too long":          {func(p *Policy) { p.Windows[0].Length = MaxWindow + 1 }, []string{"windows[0].length"}},
		"window of nothing":        {func(p *Policy) { p.Windows[0].Length = 0 }, []string{"windows[0].length"}},
		"window backwards":         {func(p *Policy) { p.Windows[0].Length = -1 }, []string{"windows[0].length"}},
		"rules at once":            {func(p *Policy) { p.Windows[1].From = p.Windows[0].From }, []string{"windows[1].from"}},
		"rules not in order":       {func(p *Policy) { p.Windows = append(p.Windows, WindowRule{base + 1, 1000}) }, []string{"windows[2].from"}},
		"a rule at the close":      {func(p *Policy) { p.Windows[1].From = p.Closes }, []string{"windows[1].from"}},
		"a rule before 1970":       {func(p *Policy) { p.Windows = append([]WindowRule{{-1, 1000}}, p.Windows...) }, []string{"windows[0].from", "windows[0].from"}},
		"notice too short":         {func(p *Policy) { p.Notice = MinNotice - 1 }, []string{"notice"}},
		"notice too long":          {func(p *Policy) { p.Notice = MaxNotice + 1 }, []string{"notice"}},
		"outflow of zero":          {func(p *Policy) { p.Outflow.PerMinute = 0 }, []string{"outflow.per_minute"}},
		"outflow too fast":         {func(p *Policy) { p.Outflow.PerMinute = MaxRate + 1 }, []string{"outflow.per_minute"}},
		"claim too short":          {func(p *Policy) { p.Claim = MinClaim - 1 }, []string{"claim"}},
		"claim too long":           {func(p *Policy) { p.Claim = MaxClaim + 1 }, []string{"claim"}},
		"grace too short":          {func(p *Policy) { p.Grace = MinGrace - 1 }, []string{"grace"}},
		"grace too long":           {func(p *Policy) { p.Grace = MaxGrace + 1 }, []string{"grace"}},
		"session too short":        {func(p *Policy) { p.Session = MinSession - 1 }, []string{"session"}},
		"session too long":         {func(p *Policy) { p.Session = MaxSession + 1 }, []string{"session"}},
		"several things":           {func(p *Policy) { p.Beacon, p.Claim, p.Outflow.PerMinute = &Beacon{Margin: MinMargin}, 0, 0 }, []string{"beacon", "outflow.per_minute", "claim"}},
		"nothing at all": {func(p *Policy) { *p = Policy{} }, []string{
			"origin", "log_key", "vrf_key", "lanes", "closes", "windows", "notice", "outflow.per_minute", "claim", "grace", "session",
		}},
		"too many rules": {func(p *Policy) {
			*p = largestPolicy()
			p.Windows = append(p.Windows, WindowRule{Never - 1, MaxWindow})
		}, []string{"windows"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := testPolicy()
			tc.change(&p)
			var fields []string
			for _, problem := range p.Problems() {
				fields = append(fields, problem.Field)
				if !strings.HasPrefix(problem.Detail, "must ") {
					t.Errorf("%s: %q does not say what is wanted", problem.Field, problem.Detail)
				}
			}
			if diff := cmp.Diff(tc.want, fields); diff != "" {
				t.Errorf("fields with problems (-want +got):\n%s", diff)
			}
		})
	}
}
