package verifier_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// odd are texts that different readers sometimes treat differently.
var odd = []string{
	"\n", "\n\n", "\r", "\r\n", "\t", " ", "  ", "\x00", "\x1f", "\x7f", "+", "=", "==", "-", "_", "/", ".", "0", "00", "1", "9", "A", "a", "x",
	"—", "— ", "\u00a0", "\u0085", "\u2028", "\u2029", "\u200b", "\u3000", "\ufeff", "\ufffd", "\u180e", "\U0001f600", "é", "e\u0301",
	"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "null", "true", `""`, "{}", "[]", ",", ":", `"`, `\`, `\u0041`, `\ud800`, "1e0", "1.0", "-0",
	"18446744073709551615", "18446744073709551616", "9223372036854775807", "9223372036854775808", "1152921504606846976", "1152921504606846977", "9007199254740992",
	"extra ", "extra AA==\n", "index ", "claims", "never", "general", "__proto__", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=",
}

const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// changed changes one of the seeds in one to three ways.
func changed(random *rand.Rand, seeds []text) text {
	c := seeds[random.IntN(len(seeds))]
	c.Args = slices.Clone(c.Args)
	which := 0
	if len(c.Args) > 1 && random.IntN(5) == 0 {
		which = random.IntN(len(c.Args))
	}
	other := seeds[random.IntN(len(seeds))].Args[which]
	size := len(c.Args[which])
	b := bytes.Clone(c.Args[which])
	for range 1 + random.IntN(3) {
		b = change(random, b, other)
	}
	if c.Kind == "cosignature" && which == 0 || c.Kind == "bundle" && len(b) == 0 {
		b = slices.Grow(b, size)[:size] // a field of a fixed size
	}
	if c.Kind == "growth" && len(bytes.Split(b, []byte(" "))) < 4 {
		return c
	}
	c.Args[which] = b
	return c
}

func change(random *rand.Rand, b, other []byte) []byte {
	if len(b) == 0 {
		return []byte(odd[random.IntN(len(odd))])
	}
	at := random.IntN(len(b))
	to := at + random.IntN(min(len(b)-at, 80)+1)
	put := func(from, to int, with []byte) []byte {
		return slices.Concat(b[:from], with, b[to:])
	}
	switch random.IntN(14) {
	case 0:
		return put(at, at+1, []byte{b[at] ^ 1<<random.IntN(8)})
	case 1:
		return put(at, at+1, []byte{base64Alphabet[random.IntN(64)]})
	case 2:
		return put(at, at+1, []byte(odd[random.IntN(len(odd))]))
	case 3:
		return put(at, at, []byte(odd[random.IntN(len(odd))]))
	case 4:
		return put(at, to, nil)
	case 5:
		return put(at, at, b[at:to])
	case 6: // unused bits: a neighbour of the character before padding or an end
		ends := regexp.MustCompile(`[A-Za-z0-9+/](?:=|\n|"|$)`).FindAllIndex(b, -1)
		if len(ends) == 0 {
			return b
		}
		at = ends[random.IntN(len(ends))][0]
		next := (strings.IndexByte(base64Alphabet, b[at]) + 1 + random.IntN(3)) % 64
		return put(at, at+1, []byte{base64Alphabet[next]})
	case 7, 8, 9, 10:
		return changeLines(random, b, other)
	case 11: // a number
		numbers := regexp.MustCompile(`[0-9]+`).FindAllIndex(b, -1)
		if len(numbers) == 0 {
			return b
		}
		n := numbers[random.IntN(len(numbers))]
		value, _ := new(big.Int).SetString(string(b[n[0]:n[1]]), 10)
		value.Add(value, big.NewInt(int64(random.IntN(3))-1))
		return put(n[0], n[1], []byte(value.String()))
	case 12: // replaces a word by another
		words := regexp.MustCompile(`[^ \n]+`).FindAllIndex(b, -1)
		if len(words) == 0 {
			return b
		}
		one, two := words[random.IntN(len(words))], words[random.IntN(len(words))]
		return put(one[0], one[1], b[two[0]:two[1]])
	}
	return put(at, at+1, []byte(strings.ToUpper(string(b[at:at+1]))))
}

// changeLines removes, doubles, swaps and borrows lines.
func changeLines(random *rand.Rand, b, other []byte) []byte {
	lines, theirs := bytes.SplitAfter(b, []byte("\n")), bytes.SplitAfter(other, []byte("\n"))
	at, from := random.IntN(len(lines)), random.IntN(len(lines))
	switch random.IntN(4) {
	case 0:
		lines = slices.Delete(lines, at, at+1)
	case 1:
		lines = slices.Insert(lines, at, lines[from])
	case 2:
		lines[at], lines[from] = lines[from], lines[at]
	case 3:
		lines = slices.Insert(lines, at, theirs[random.IntN(len(theirs))])
	}
	return bytes.Join(lines, nil)
}

// notesOnPurpose are notes with a valid signature whose text or other lines are made to be read differently.
func notesOnPurpose(t *testing.T, random *rand.Rand, n int) (all []text) {
	t.Helper()
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	names := []string{"example.com/r/a", "a", "ünïcode·", "a\u200bb", "a\ufeffb", "a\u00a0b", "a\u2028b", "a\x7fb", "a\x01b", "a b", "a+b", "", "\U0001f600", "e\u0301"}
	texts := []string{
		"%s\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", "%s\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n", "%s\n0\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"%s\n1152921504606846976\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", "%s\n1152921504606846977\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"%s\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2J=\n", "%s\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\nextension\n", "%s\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
		"%s\n+1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", "%s\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\n", "%s\n1\n\n", "\n", "",
	}
	for range n {
		name := names[random.IntN(len(names))]
		vkey, id := keyNamed(name, private.Public().(ed25519.PublicKey))
		text := texts[random.IntN(len(texts))*random.IntN(2)]
		if strings.Contains(text, "%s") {
			text = fmt.Sprintf(text, names[random.IntN(len(names))*random.IntN(2)])
			if random.IntN(3) > 0 {
				text = name + text[strings.Index(text, "\n"):]
			}
		}
		line := func(name string, id, sig []byte) string {
			encoded := base64.StdEncoding.EncodeToString(slices.Concat(id, sig))
			if random.IntN(20) == 0 {
				encoded = string(change(random, []byte(encoded), nil))
			}
			return "— " + name + " " + encoded + "\n"
		}
		own := line(name, id, ed25519.Sign(private, []byte(text)))
		wrong := ed25519.Sign(private, []byte(text+"x"))
		lines := []string{own}
		more := []int{0, 0, 1, 1, 2, 3, 98, 99, 100}[random.IntN(9)]
		for range more {
			switch random.IntN(8) {
			case 0:
				if more < 5 {
					lines = append(lines, own)
				}
			case 1:
				if more < 5 {
					lines = append(lines, line(name, id, wrong))
				}
			case 2:
				lines = append(lines, line(name, []byte{1, 2, 3, byte(len(lines))}, wrong))
			case 3:
				lines = append(lines, line(names[random.IntN(2)], id, wrong))
			case 4:
				lines = append(lines, line("other", []byte{1, 2, 3, 4}, make([]byte, random.IntN(6))))
			case 5:
				lines = append(lines, line(names[random.IntN(len(names))*random.IntN(2)], []byte{9, 2, 3, 4}, make([]byte, 72)))
			default:
				lines = append(lines, line("witness.example.org", []byte{byte(len(lines)), 2, 3, 4}, make([]byte, 72)))
			}
		}
		random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		note := text + "\n" + strings.Join(lines, "")
		all = append(all, text2("note", note, vkey), text2("form", note))
	}
	return all
}

func text2(kind string, args ...string) text {
	c := text{Kind: kind}
	for _, arg := range args {
		c.Args = append(c.Args, []byte(arg))
	}
	return c
}

func keyNamed(name string, public []byte) (vkey string, id []byte) {
	typed := append([]byte{1}, public...)
	sum := sha256.Sum256(append([]byte(name+"\n"), typed...))
	return fmt.Sprintf("%s+%x+%s", name, sum[:4], base64.StdEncoding.EncodeToString(typed)), sum[:4]
}

// signaturesOnPurpose are signatures by keys of small order and in other
// encodings, about which readers of Ed25519 are known to differ.
//
// https://eprint.iacr.org/2020/1244
func signaturesOnPurpose(t *testing.T, random *rand.Rand, n int) (all []text) {
	t.Helper()
	points := smallPoints()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	for range n {
		a, r, s := points[random.IntN(len(points))], points[random.IntN(len(points))], make([]byte, 32)
		switch random.IntN(4) {
		case 0:
			copy(s, reversed(order.FillBytes(make([]byte, 32))))
		case 1:
			copy(s, reversed(new(big.Int).Sub(order, big.NewInt(1)).FillBytes(make([]byte, 32))))
		}
		vkey, id := keyNamed("a", a)
		text := fmt.Sprintf("a\n%d\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n", 1+random.IntN(1000))
		all = append(all, text2("note", text+"\n— a "+base64.StdEncoding.EncodeToString(slices.Concat(id, r, s))+"\n", vkey))

		typed := append([]byte{4}, a...)
		sum := sha256.Sum256(append([]byte("w\n"), typed...))
		seconds := binary.BigEndian.AppendUint64(nil, []uint64{0, 1, 1_800_000_000, 1<<53 - 1, 1 << 53, 1<<63 - 1, 1 << 63, 1<<64 - 1}[random.IntN(8)])
		witness := fmt.Sprintf("w+%x+%s", sum[:4], base64.StdEncoding.EncodeToString(typed))
		all = append(all, text2("cosignature", string(slices.Concat(sum[:4], seconds, r, s)), witness, text), text2("witness", witness))
	}
	return all
}

func reversed(b []byte) []byte { slices.Reverse(b); return b }

// smallPoints are the points of order 1, 2, 4 and 8, in every encoding that some reader accepts.
func smallPoints() (all [][]byte) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	eight, _ := new(big.Int).SetString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", 16)
	eight.SetBytes(reversed(eight.FillBytes(make([]byte, 32))))
	for _, y := range []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1)), eight, new(big.Int).Sub(p, eight)} {
		for _, add := range []*big.Int{big.NewInt(0), p} {
			sum := new(big.Int).Add(y, add)
			if sum.BitLen() > 255 {
				continue
			}
			for _, sign := range []byte{0, 0x80} {
				b := reversed(sum.FillBytes(make([]byte, 32)))
				b[31] |= sign
				all = append(all, b)
			}
		}
	}
	return append(all, bytes.Repeat([]byte{2}, 32)) // not a point, or one of the large order
}
