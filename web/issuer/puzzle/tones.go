package puzzle

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
)

// tones asks which of several tones are long, or short.
type tones struct{}

// toneOptions is the number of tones in a puzzle, in two groups with a pause between them.
const toneOptions = 8

// The sound: bytes of one channel, and durations in samples.
const (
	sampleRate = 8000
	longTone   = sampleRate * 60 / 100
	shortTone  = sampleRate * 15 / 100
	toneTime   = sampleRate * 95 / 100 // from one tone to the next
	groupPause = sampleRate
	silence    = 128 // a sample without sound
	fade       = sampleRate / 100
)

func (tones) make(r *rand.Rand, say Say) *Puzzle {
	fits, asksLong := mark(r, toneOptions), r.IntN(2) == 0
	p := &Puzzle{Question: say("puzzle.short"), fits: fits}
	if asksLong {
		p.Question = say("puzzle.long")
	}
	pitch := between(r, 330, 660)
	sound := make([]byte, 0, toneOptions*toneTime+groupPause)
	for i := range toneOptions {
		length := shortTone
		if fits.Has(i) == asksLong {
			length = longTone
		}
		sound = appendTone(sound, r, pitch, length)
		if i == toneOptions/2-1 {
			sound = appendNoise(sound, r, groupPause)
		}
		p.Options = append(p.Options, Option{Label: say("puzzle.tone", "number", strconv.Itoa(i+1))})
	}
	p.Sound = wav(sound)
	return p
}

// appendTone appends a tone, and silence up to the next one.
func appendTone(sound []byte, r *rand.Rand, pitch float64, length int) []byte {
	loud := between(r, 60, 90)
	for i := range length {
		edge := math.Min(1, float64(min(i, length-i))/fade)
		wave := math.Sin(2 * math.Pi * pitch * float64(i) / sampleRate)
		sound = append(sound, byte(silence+loud*edge*wave+between(r, -2, 2)))
	}
	return appendNoise(sound, r, toneTime-length)
}

// appendNoise appends what is heard as silence.
func appendNoise(sound []byte, r *rand.Rand, length int) []byte {
	for range length {
		sound = append(sound, byte(silence+between(r, -2, 2)))
	}
	return sound
}

// wav returns a WAV file with samples of 8 bits.
func wav(samples []byte) []byte {
	const format = 16 // bytes of the chunk
	b := append(make([]byte, 0, 44+len(samples)), "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(4+8+format+8+len(samples))) //nolint:gosec // some seconds
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, format)
	for _, v := range []uint16{1, 1} { // PCM, one channel
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	for _, v := range []uint32{sampleRate, sampleRate} { // samples and bytes a second
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []uint16{1, 8} { // bytes and bits of a sample
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(samples))) //nolint:gosec // some seconds
	return append(b, samples...)
}
