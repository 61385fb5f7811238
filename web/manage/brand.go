package manage

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
)

type brandInput struct {
	Brand room.Brand `json:"brand" need:"true"`
}

// brandCheck is the result of checking a brand.
type brandCheck struct {
	Problems []draftProblem    `json:"problems" doc:"Problems that prevent its use, by field."`
	CSS      []style.Problem   `json:"css" doc:"Parts of the CSS that are left out, with their positions."`
	Contrast []contrastFinding `json:"contrast" doc:"Contrast of the chosen colours."`
}

type contrastFinding struct {
	Scheme   string  `json:"scheme" enum:"light,dark"`
	Pair     string  `json:"pair" doc:"Foreground and background."`
	Where    string  `json:"where" doc:"Place on the page."`
	Given    string  `json:"given" doc:"Chosen colour, or the default."`
	Ground   string  `json:"ground"`
	Ratio    float64 `json:"ratio" doc:"Contrast ratio of these two, from 1 to 21."`
	Required float64 `json:"required"`
	Shown    string  `json:"shown" doc:"Colour that is shown."`
	Then     float64 `json:"then" doc:"Contrast ratio of the shown colour."`
	Repaired bool    `json:"repaired" doc:"The shown colour differs from the given one."`
	Good     bool    `json:"good"`
}

func (a *API) brandRoutes() []route {
	return []route{{
		method: http.MethodPost, path: "brand-checks", scope: account.Read, name: "checkBrand", tag: "rooms",
		summary: "Check a brand and the contrast of its colours", more: "Nothing is stored.",
		in: brandInput{}, example: `{"brand": {"color": "#c2185b", "background": "#ffffff"}}`, out: brandCheck{}, do: checkBrand,
	}}
}

func checkBrand(c *call) (reply, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(c.body, &members); err != nil {
		return reply{}, unreadable(err)
	}
	for name := range members {
		if name != "brand" {
			return reply{}, invalid.Field(name, "is unknown")
		}
	}
	amendment, err := room.ParseAmendment(c.body)
	wrong, isInvalid := errors.AsType[*invalid.Error](err)
	if amendment.Brand == nil || err != nil && !isInvalid {
		return reply{}, err
	}
	out := brandCheck{Problems: []draftProblem{}, CSS: []style.Problem{}, Contrast: []contrastFinding{}}
	if isInvalid {
		for _, p := range wrong.Problems {
			out.Problems = append(out.Problems, draftProblem(p))
		}
	}
	if _, found := style.Parse(amendment.Brand.CSS); len(found) > 0 {
		out.CSS = found
	}
	findings, _ := looks.Looks(amendment.Brand).Contrast() // of valid colours
	for _, f := range findings {
		out.Contrast = append(out.Contrast, contrastFinding{string(f.Scheme), f.Pair, f.Where, f.Given, f.Ground, f.Ratio, f.Required, f.Shown, f.Then, f.Repaired, f.Good()})
	}
	return answer(out)
}
