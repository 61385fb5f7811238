package manage

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/style"
	looks "github.com/proofline/proofline/web/brand"
)

// brandChecks checks brands. It does not depend on the server's state.
type brandChecks struct{}

func (a brandChecks) routes() []route {
	return []route{{
		method: http.MethodPost, path: "brand-checks", scope: account.Read, name: "checkBrand", tag: "rooms",
		summary: "Check a brand and the contrast of its colours", more: "Nothing is stored.",
		in: wire.BrandInput{}, example: `{"brand": {"color": "#c2185b", "background": "#ffffff"}}`,
		out: wire.BrandCheck{}, do: checkBrand,
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
	out := wire.BrandCheck{Problems: []wire.DraftProblem{}, CSS: []style.Problem{}, Contrast: []wire.ContrastFinding{}}
	if isInvalid {
		for _, p := range wrong.Problems {
			out.Problems = append(out.Problems, wire.DraftProblem(p))
		}
	}
	if _, found := style.Parse(amendment.Brand.CSS); len(found) > 0 {
		out.CSS = found
	}
	findings, _ := looks.Looks(amendment.Brand).Contrast() // findings about valid colours only
	for _, f := range findings {
		out.Contrast = append(out.Contrast, wire.ContrastFinding{
			Scheme: string(f.Scheme), Pair: f.Pair, Where: f.Where, Given: f.Given, Ground: f.Ground, Ratio: f.Ratio,
			Required: f.Required, Shown: f.Shown, Then: f.Then, Repaired: f.Repaired, Good: f.Good(),
		})
	}
	return answer(out)
}
