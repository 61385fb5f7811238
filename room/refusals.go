package room

import (
	"errors"

	"github.com/proofline/proofline/internal/millis"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/meter"
	"github.com/proofline/proofline/room/projection"
)

// Refusals counts the joins that a room refuses although it takes joins. Each minute the transcript states the counts.
type Refusals struct {
	room  *Room
	meter *meter.Meter
}

// ByNetwork counts a join that was refused because its network has used up its limit, unless the room would not have
// taken it anyway, as it is not open.
func (f Refusals) ByNetwork() { f.early(projection.RefusedNetwork) }

// ByVerdict counts a join that was refused because of the verdict of a bot tool in front, under the same condition.
func (f Refusals) ByVerdict() { f.early(projection.RefusedVerdict) }

// early counts a join that was refused before the room saw it.
func (f Refusals) early(why projection.Refusal) {
	if err := f.room.openFor(f.room.Now()); err == nil || errors.Is(err, ErrFull) {
		f.add(why)
	}
}

// note counts a join that was answered with an error, if that is a refusal.
func (f Refusals) note(err error) {
	if err == nil {
		return
	}
	_, isMethodFull := errors.AsType[*door.FullError](err)
	limit, isLimit := errors.AsType[*LimitError](err)
	switch {
	case errors.Is(err, ErrFull):
		f.add(projection.RefusedFull)
	case isMethodFull:
		f.add(projection.RefusedMethod)
	case isLimit && limit.Server:
		f.add(projection.RefusedServer)
	case isLimit:
		f.add(projection.RefusedRoom)
	case errors.Is(err, ErrBusy):
		f.add(projection.RefusedBusy)
	}
}

func (f Refusals) add(why projection.Refusal) {
	f.meter.Refused(why.String())
	f.room.controls.Refusals.Add(why, millis.Of(f.room.Now()))
}
