package wire

import (
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/style"
)

// BrandInput is a brand to check.
type BrandInput struct {
	Brand branding.Brand `json:"brand" need:"true"`
}

// BrandCheck is the result of checking a brand.
type BrandCheck struct {
	Problems []DraftProblem    `json:"problems" doc:"Problems that prevent its use, by field."`
	CSS      []style.Problem   `json:"css" doc:"Parts of the CSS that are left out, with their positions."`
	Contrast []ContrastFinding `json:"contrast" doc:"Contrast of the chosen colours."`
}

// ContrastFinding is the contrast of one pair of colours.
type ContrastFinding struct {
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
