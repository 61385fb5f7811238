package export_test

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/audit/roomlog"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/roomtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/branding"
	"github.com/proofline/proofline/room/export"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/pgroom"
	"github.com/proofline/proofline/room/queueit"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// server starts the rooms of a server with a database of its own.
func server(t testing.TB, publicURL string) *room.Rooms {
	t.Helper()
	return node(t, pgtest.URL(t), publicURL, servertest.MasterKey(t), nil)
}

// node starts the rooms of a server on a database.
func node(t testing.TB, url, publicURL string, master *keys.MasterKey, archive pglog.Archive) *room.Rooms {
	t.Helper()
	return servertest.Rooms(t, servertest.Pool(t, url), func(o *room.Options) {
		o.MasterKey, o.PublicURL = master, publicURL
		o.Logs.ReadArchive(archive)
	})
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("not within three minutes: %s", what)
}

// visitor is a visitor of a room with a secret.
type visitor struct {
	ticket fairness.Ticket
	secret [fairness.SecretSize]byte
}

const (
	visitors = 150 // so that the transcript has more than one tile
	message  = "Back at nine."
	secret   = "a-secret-that-a-site-shares-with-its-room"
)

// sale creates a room with everything that an export has, and much that it must not have.
func sale(t testing.TB, rs *room.Rooms, slug string) (r *room.Room, all []visitor) {
	t.Helper()
	length := room.Duration(time.Second)
	r, err := rs.Create(t.Context(), room.Config{
		Slug: slug, Title: "Summer tour", Windows: []room.WindowRule{{Length: length}},
		Settings: room.Settings{MinScore: 30, TimeZone: "Europe/Vienna", Targets: []string{"https://shop.example.com"},
			Brand: branding.Brand{Scheme: branding.Scheme{Color: "#aa0000"}, CSS: ".button { border-radius: 2px }"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var joining sync.WaitGroup
	all = make([]visitor, visitors)
	for i := range all {
		_, _ = rand.Read(all[i].secret[:])
		all[i].ticket = fairness.NewTicket(r.Origin, all[i].secret)
		joining.Go(func() {
			if _, err := r.Join(t.Context(), all[i].ticket); err != nil {
				t.Error(err)
			}
		})
	}
	joining.Wait()
	if err := r.Amend(t.Context(), room.Amendment{Message: &room.MessageChange{
		Message: room.Message{Texts: map[string]string{"en": message}}}}); err != nil {
		t.Fatal(err)
	}
	if err := r.QueueIt.Set(t.Context(), queueit.Config{CustomerID: "acme"}, secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are drawn", func() bool { return r.Snapshot().Counts.Assigned == visitors })
	return r, all
}

// over waits until the end of a room is recorded.
func over(t testing.TB, rs *room.Rooms, slug string) {
	t.Helper()
	eventually(t, "the end is recorded", func() bool {
		record, err := rs.Store.Get(t.Context(), slug)
		return err == nil && record.Ended != nil
	})
}

// ended creates a room, ends it and exports it.
func ended(t testing.TB, rs *room.Rooms, slug string) (r *room.Room, all []visitor, file []byte) {
	t.Helper()
	r, all = sale(t, rs, slug)
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	over(t, rs, slug)
	return r, all, written(t, rs, slug)
}

func written(t testing.TB, rs *room.Rooms, slug string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := export.Write(t.Context(), rs, slug, &b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func check(t testing.TB, file []byte) (*export.Checked, error) {
	t.Helper()
	archive, err := source.ReadTar(bytes.NewReader(file), int64(len(file)), "sale.tar")
	if err != nil {
		return nil, err
	}
	return export.Check(t.Context(), archive, nil)
}

func checked(t testing.TB, file []byte) *export.Checked {
	t.Helper()
	c, err := check(t, file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var here = export.Target{Org: pgroom.MainOrg}

// TestMove exports a room, imports it on another server, and uses it there.
func TestMove(t *testing.T) {
	t.Parallel()
	old, other := server(t, "https://old.example.com"), server(t, "https://new.example.com")
	open, _ := sale(t, old, "open")
	if err := export.Write(t.Context(), old, "open", io.Discard, nil); !errors.Is(err, export.ErrNotOver) {
		t.Errorf("a room that is not over: %v", err)
	}
	if err := export.Write(t.Context(), old, "none", io.Discard, nil); !errors.Is(err, room.ErrNotFound) {
		t.Errorf("a room that does not exist: %v", err)
	}
	was, all, file := ended(t, old, "sale")
	if again := written(t, old, "sale"); !bytes.Equal(file, again) {
		t.Error("the same room gives two files")
	}
	for _, hidden := range []string{secret, "queue_it", "min_score", `"pass"`} {
		if bytes.Contains(file, []byte(hidden)) {
			t.Errorf("the file has %q", hidden)
		}
	}
	if !bytes.Contains(file, []byte(message)) {
		t.Error("the file lacks the message")
	}
	c := checked(t, file)
	if c.Origin != was.Origin || c.VKey != was.VKey || c.Server != "old.example.com/rooms" ||
		!strings.HasPrefix(c.ServerVKey, c.Server+"+") || c.IsLost || !c.Report.OK {
		t.Errorf("%+v", c)
	}

	if err := export.Import(t.Context(), old, c, here); !errors.Is(err, export.ErrExists) {
		t.Errorf("import where the room is: %v", err)
	}
	if err := export.Import(t.Context(), other, c, here); err != nil {
		t.Fatal(err)
	}
	for _, to := range []export.Target{here, {Slug: "renamed", Org: pgroom.MainOrg}} {
		if err := export.Import(t.Context(), other, c, to); !errors.Is(err, export.ErrExists) {
			t.Errorf("import again as %q: %v", to.Slug, err)
		}
	}
	r, err := other.Get(t.Context(), "sale")
	if err != nil {
		t.Fatal(err)
	}
	if r.Origin != was.Origin || r.VKey != was.VKey || r.URL != "https://new.example.com/r/sale" {
		t.Errorf("%+v", r)
	}
	settings, _ := r.Settings()
	told := r.Snapshot().Message(r.Now())
	if s := r.Snapshot(); !s.Ended || s.Title != "Summer tour" || told == nil || told.Texts["en"] != message ||
		settings.Brand.Color != "#aa0000" || settings.TimeZone != "Europe/Vienna" || settings.MinScore != 0 {
		t.Errorf("snapshot %+v, settings %+v", s, settings)
	}
	report, err := verifier.Audit(t.Context(), r.Transcript, verifier.Trust{VKey: was.VKey})
	if err != nil || !report.OK {
		t.Fatalf("audit: %+v, %v", report, err)
	}
	key, err := audit.ParseKey(was.VKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		before, _ := was.Standing(v.ticket)
		after, ok := r.Standing(v.ticket)
		if !ok || before.Position != after.Position || before.Status != after.Status {
			t.Fatalf("a ticket had %+v and has %+v", before, after)
		}
		// Nothing is issued for it here.
		if _, err := r.Claim(t.Context(), v.ticket, v.secret); !errors.Is(err, room.ErrExpired) {
			t.Fatalf("claim: %v", err)
		}
		receipt, err := other.Logs.Receipt(t.Context(), r.ID, uint64(after.Index))
		if err != nil {
			t.Fatal(err)
		}
		proof, err := audit.ParseProof(receipt)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := audit.OpenCheckpoint(proof.Checkpoint, key); err != nil {
			t.Fatal(err)
		}
	}
	stranger := fairness.NewTicket(r.Origin, [fairness.SecretSize]byte{1})
	if _, err := r.Join(t.Context(), stranger); !errors.Is(err, room.ErrClosed) {
		t.Errorf("join: %v", err)
	}
	if err := r.Amend(t.Context(), room.Amendment{Message: &room.MessageChange{
		Message: room.Message{Texts: map[string]string{"en": "More."}}}}); err == nil {
		t.Error("an entry was added to an imported room")
	}
	if err := r.End(t.Context()); err != nil {
		t.Errorf("end: %v", err)
	}

	// The log of rooms says what happened. From the same file, the room can move to other servers, too.
	signed, err := other.Register.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, err := roomlog.Read(t.Context(), other.Register.Tile, signed, "")
	if err != nil {
		t.Fatal(err)
	}
	if l := log.Of(was.Origin); l == nil || !l.IsImported || l.Ended == 0 || l.Size != report.Entries {
		t.Errorf("the log of rooms has %+v", l)
	}
	if err := export.Write(t.Context(), other, "sale", io.Discard, nil); !errors.Is(err, export.ErrImported) {
		t.Errorf("an export without the key: %v", err)
	}
	third := server(t, "https://third.example.com")
	if err := export.Import(t.Context(), third, c, export.Target{Slug: "open", Org: pgroom.MainOrg}); err != nil {
		t.Fatal(err)
	}
	if r, err := third.Get(t.Context(), "open"); err != nil || r.Origin != was.Origin {
		t.Errorf("under another name: %v", err)
	}
	if err := open.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	over(t, old, "open")
	if err := export.Import(t.Context(), third, checked(t, written(t, old, "open")), here); !errors.Is(err, export.ErrTaken) {
		t.Errorf("under a name that is taken: %v", err)
	}
}

// TestArchive moves the transcript of a room out of the database, while one node has the room loaded.
func TestArchive(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	master, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	archive := export.Archive(t.TempDir())
	rs := node(t, url, "https://old.example.com", master, archive)
	was, all := sale(t, rs, "sale")
	if _, _, err := archive.Write(t.Context(), rs, "sale", nil); !errors.Is(err, export.ErrNotOver) {
		t.Errorf("a room that is not over: %v", err)
	}
	if err := was.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	over(t, rs, "sale")
	file := written(t, rs, "sale")
	_, mark, err := archive.Write(t.Context(), rs, "sale", nil)
	if err != nil {
		t.Fatal(err)
	}
	// What was changed since then is found before anything is removed, and replaced.
	bundle := filepath.Join(archive.Of("sale"), "tile", "entries", "000")
	content, err := os.ReadFile(bundle)
	if err == nil {
		content[len(content)-1] ^= 1
		err = os.WriteFile(bundle, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	id, again, err := archive.Write(t.Context(), rs, "sale", nil)
	if err != nil || again != mark || id != was.ID {
		t.Fatalf("%v, not %v: %v", again, mark, err)
	}
	if _, err := pglog.Drop(t.Context(), url, id, "sale", mark); err != nil {
		t.Fatal(err)
	}
	fresh := node(t, url, "https://old.example.com", master, archive)
	for _, rs := range []*room.Rooms{rs, fresh} {
		r, err := rs.Get(t.Context(), "sale")
		if err != nil {
			t.Fatal(err)
		}
		report, err := verifier.Audit(t.Context(), r.Transcript, verifier.Trust{VKey: was.VKey})
		if err != nil || !report.OK || report.Entries != mark.Size {
			t.Fatalf("audit: %+v, %v", report, err)
		}
		for _, v := range all {
			before, _ := was.Standing(v.ticket)
			if after, ok := r.Standing(v.ticket); !ok || after.Position != before.Position || after.Status != before.Status {
				t.Fatalf("a ticket had %+v and has %+v", before, after)
			}
		}
	}
	if again := written(t, fresh, "sale"); !bytes.Equal(file, again) {
		t.Error("the export of an archived room is another")
	}
	if _, _, err := archive.Write(t.Context(), fresh, "sale", nil); err != nil {
		t.Errorf("written again from the archive: %v", err)
	}
	blind := node(t, url, "https://old.example.com", master, nil)
	if _, err := blind.Get(t.Context(), "sale"); !errors.Is(err, room.ErrArchived) {
		t.Errorf("without the archive: %v", err)
	}
	if _, err := archive.Tile(t.Context(), "../sale", audit.Tile{Level: -1, Width: 1}); !errors.Is(err, source.ErrNoTranscript) {
		t.Errorf("a path outside of the archive: %v", err)
	}
}

// TestLost moves a room that its operator ended because entries are lost.
func TestLost(t *testing.T) {
	t.Parallel()
	old, other := server(t, "https://old.example.com"), server(t, "https://new.example.com")
	was, _ := sale(t, old, "lost")
	has := was.Snapshot().Size
	seen := pglog.Mark{Size: has + 5_000, Root: audit.LeafHash([]byte("another"))}
	if err := old.Logs.Hold(t.Context(), was.ID, seen, "server elsewhere"); err != nil {
		t.Fatal(err)
	}
	rec, err := old.Recover(t.Context(), "lost")
	if err != nil {
		t.Fatal(err)
	}
	statement, err := rec.End(t.Context(), "All tickets are refunded.")
	if err != nil {
		t.Fatal(err)
	}
	file := written(t, old, "lost")
	c := checked(t, file)
	if !c.IsLost || c.Statement != statement {
		t.Errorf("%+v", c)
	}
	for name, change := range map[string]string{"words": "All tickets are void.", "no words": ""} {
		changed := change
		if change != "" {
			changed = strings.Replace(statement, "All tickets are refunded.", change, 1)
		}
		if _, err := check(t, withRecord(t, file, func(r map[string]any) { r["statement"] = changed })); !errors.Is(err, export.ErrFile) {
			t.Errorf("a statement with other words (%s): %v", name, err)
		}
	}
	if err := export.Import(t.Context(), other, c, here); err != nil {
		t.Fatal(err)
	}
	var lost *room.Regression
	if _, err := other.Get(t.Context(), "lost"); !errors.Is(err, room.ErrAbandoned) || !errors.As(err, &lost) || lost.Statement != statement {
		t.Errorf("the room of the other server: %v", err)
	}
}

// member is a file of an archive.
type member struct {
	name    string
	content []byte
}

// unpack returns the files of an export.
func unpack(t testing.TB, file []byte) (list []member) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(file)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		content, errRead := io.ReadAll(r)
		if err = errors.Join(err, errRead); err != nil {
			t.Fatal(err)
		}
		list = append(list, member{h.Name, content})
	}
}

// pack is the inverse of unpack.
func pack(t testing.TB, list []member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range list {
		err := w.WriteHeader(&tar.Header{Name: m.name, Size: int64(len(m.content)), Mode: 0o644})
		if err == nil {
			_, err = w.Write(m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withFile replaces a file of an export; nil: removes it.
func withFile(t testing.TB, file []byte, name string, change func([]byte) []byte) []byte {
	t.Helper()
	list := unpack(t, file)
	at := slices.IndexFunc(list, func(m member) bool { return m.name == name })
	if at < 0 {
		t.Fatalf("no file %s", name)
	}
	if changed := change(bytes.Clone(list[at].content)); changed != nil {
		list[at].content = changed
	} else {
		list = slices.Delete(list, at, at+1)
	}
	return pack(t, list)
}

// withRecord changes the record of an export.
func withRecord(t testing.TB, file []byte, change func(map[string]any)) []byte {
	t.Helper()
	return withFile(t, file, "room.json", func(text []byte) []byte {
		var record map[string]any
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		change(record)
		text, err := json.Marshal(record)
		if err != nil {
			t.Fatal(err)
		}
		return text
	})
}

// signed signs the record of an export again, with the key of small.
func signed(t testing.TB, file []byte, k, of *roomtest.Keys) []byte {
	t.Helper()
	list := unpack(t, file)
	at := slices.IndexFunc(list, func(m member) bool { return m.name == "room.json" })
	sum := sha256.Sum256(list[at].content)
	n, err := note.Sign(&note.Note{Text: fmt.Sprintf("proofline.dev/room-export/1\n%s\n%s\n%s\n", k.Origin, base64.StdEncoding.EncodeToString(sum[:]), of.VKey)}, k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return withFile(t, pack(t, append(list, member{"room.sig", nil})), "room.sig", func([]byte) []byte { return n })
}

// TestRefused changes each file of an export, and what the record says.
func TestRefused(t *testing.T) {
	t.Parallel()
	rs := server(t, "https://old.example.com")
	_, _, file := ended(t, rs, "sale")
	_, _, another := ended(t, rs, "sale-2")
	if _, err := check(t, pack(t, unpack(t, file))); err != nil {
		t.Fatalf("packed again: %v", err)
	}
	cases := map[string][]byte{}
	for _, m := range unpack(t, file) {
		cases[m.name+" is missing"] = withFile(t, file, m.name, func([]byte) []byte { return nil })
		cases[m.name+" is cut"] = withFile(t, file, m.name, func(b []byte) []byte { return b[:len(b)-1] })
		cases[m.name+" is longer"] = withFile(t, file, m.name, func(b []byte) []byte { return append(b, 'x') })
		for _, at := range []int{0, len(m.content) / 2, len(m.content) - 1} {
			name := fmt.Sprintf("%s has another byte at %d", m.name, at)
			cases[name] = withFile(t, file, m.name, func(b []byte) []byte { b[at] ^= 1; return b })
		}
	}
	list, others := unpack(t, file), unpack(t, another)
	extra := func(name string) []byte { return pack(t, append(slices.Clone(list), member{name, []byte("x")})) }
	cases["a file of its own"] = extra("transcript/evil.html")
	cases["an old tile"] = extra("transcript/tile/0/000.p/7")
	cases["the transcript of another room"] = pack(t, append(slices.DeleteFunc(slices.Clone(list), func(m member) bool { return strings.HasPrefix(m.name, "transcript/") }),
		slices.DeleteFunc(slices.Clone(others), func(m member) bool { return !strings.HasPrefix(m.name, "transcript/") })...))
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if c, err := check(t, cases[name]); !errors.Is(err, export.ErrFile) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for name, content := range map[string][]byte{
		"a path outside": extra("../evil"), "an absolute path": extra("/etc/passwd"), "a file twice": extra("room.json"),
		"cut off in a header": file[:700],
	} {
		if _, err := check(t, content); !errors.Is(err, source.ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := 0; cut < len(file); cut += 2_000 {
		if _, err := check(t, file[:cut]); err == nil && len(bytes.Trim(file[cut:], "\x00")) > 0 {
			t.Errorf("cut off at %d: no error", cut)
		}
	}
}

// TestRecord lets the operator of the old server sign a record that no room can have.
func TestRecord(t *testing.T) {
	t.Parallel()
	file, k, of := small(t)
	checked(t, file)
	for name, change := range map[string]func(map[string]any){
		"another format":   func(r map[string]any) { r["format"] = "proofline.dev/room-export/2" },
		"an unknown field": func(r map[string]any) { r["key"] = "x" },
		"no slug":          func(r map[string]any) { r["slug"] = "" },
		"a path as slug":   func(r map[string]any) { r["slug"] = "../admin" },
		"another message":  func(r map[string]any) { r["messages"] = []string{`{"default":"en","texts":{"en":"x"}}`} },
		"a target":         func(r map[string]any) { r["settings"] = map[string]any{"targets": []string{"javascript:alert(1)"}} },
		"a style sheet": func(r map[string]any) {
			r["settings"] = map[string]any{"brand": map[string]any{"css": "@import url(https://evil.example.com)"}}
		},
		"a statement": func(r map[string]any) { r["statement"] = "The room ended." },
	} {
		changed := withFile(t, withRecord(t, file, change), "room.sig", func([]byte) []byte { return nil })
		if c, err := check(t, signed(t, changed, k, of)); !errors.Is(err, export.ErrFile) || strings.Contains(err.Error(), "room.sig") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	if _, err := check(t, withRecord(t, file, func(r map[string]any) { r["title"] = "Another" })); !errors.Is(err, export.ErrFile) {
		t.Errorf("another title: %v", err)
	}
}

// TestRewritten lets the operator of the old server change the end of a room after the log of rooms has had it.
func TestRewritten(t *testing.T) {
	t.Parallel()
	rs := server(t, "https://old.example.com")
	r, _ := sale(t, rs, "sale")
	short, err := rs.Logs.Newest(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	over(t, rs, "sale")
	file := written(t, rs, "sale")
	head, err := audit.UnverifiedCheckpoint(short)
	if err != nil {
		t.Fatal(err)
	}
	// The same room, signed by the same key, without its end.
	list := slices.DeleteFunc(unpack(t, file), func(m member) bool {
		return strings.HasPrefix(m.name, "transcript/tile/") || m.name == "transcript/checkpoint"
	})
	list = append(list, member{"transcript/checkpoint", short})
	for tile := range audit.Tiles(head.Size) {
		content, err := rs.Logs.Tile(t.Context(), r.ID, tile)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, member{"transcript/" + tile.Path(), content})
	}
	if _, err := check(t, pack(t, list)); !errors.Is(err, export.ErrFile) {
		t.Errorf("a transcript without its end: %v", err)
	}
}

// TestInterrupted ends an import while it stores the transcript: nothing is stored, and the next one completes it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	old, other := server(t, "https://old.example.com"), server(t, "https://new.example.com")
	_, _, file := ended(t, old, "sale")
	reader := &brittle{Reader: bytes.NewReader(file)}
	archive, err := source.ReadTar(reader, int64(len(file)), "sale.tar")
	if err != nil {
		t.Fatal(err)
	}
	c, err := export.Check(t.Context(), archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	last := unpack(t, file)
	reader.breaks = int64(bytes.Index(file, last[3].content)) // the second bundle
	if last[3].name == "" || !strings.HasPrefix(last[3].name, "transcript/tile/entries/001") {
		t.Fatalf("the fourth file is %s", last[3].name)
	}
	if err := export.Import(t.Context(), other, c, here); !errors.Is(err, errBroken) {
		t.Fatalf("the import: %v", err)
	}
	if _, err := other.Get(t.Context(), "sale"); !errors.Is(err, room.ErrNotFound) {
		t.Errorf("half an import: %v", err)
	}
	if _, err := other.Logs.Newest(t.Context(), pgroom.RoomID("sale")); !errors.Is(err, pglog.ErrNotFound) {
		t.Errorf("half a log: %v", err)
	}
	reader.breaks = 0
	reader.changes = true // after it was checked
	if err := export.Import(t.Context(), other, c, here); !errors.Is(err, pglog.ErrCorrupt) {
		t.Errorf("a file that changes after it was checked: %v", err)
	}
	reader.changes = false
	if err := export.Import(t.Context(), other, c, here); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Get(t.Context(), "sale"); err != nil {
		t.Error(err)
	}
	signed, err := other.Register.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if head, err := audit.UnverifiedCheckpoint(signed); err != nil || head.Size != 3 {
		t.Errorf("the log of rooms has %d entries: %v", head.Size, err)
	}
}

var errBroken = errors.New("the disk is broken")

// brittle is a file that fails at a place, or changes.
type brittle struct {
	*bytes.Reader
	breaks  int64
	changes bool
}

func (b *brittle) ReadAt(p []byte, off int64) (int, error) {
	if b.breaks > 0 && off == b.breaks {
		return 0, errBroken
	}
	n, err := b.Reader.ReadAt(p, off)
	if b.changes && n > 0 {
		p[n-1] ^= 1
	}
	return n, err
}

// TestRegister: a server without an address has no log of rooms to begin, and a room with another history is refused.
func TestRegister(t *testing.T) {
	t.Parallel()
	old, nameless := server(t, "https://old.example.com"), server(t, "")
	was, _, file := ended(t, old, "sale")
	c := checked(t, file)
	if err := export.Import(t.Context(), nameless, c, here); !errors.Is(err, register.ErrNameless) {
		t.Errorf("without an address: %v", err)
	}
	other := server(t, "https://new.example.com")
	if err := other.Register.Import(t.Context(), register.Imported{VKey: was.VKey, First: audit.LeafHash([]byte("another")), End: pglog.Mark{Size: 7}}); err != nil {
		t.Fatal(err)
	}
	if err := export.Import(t.Context(), other, c, here); !errors.Is(err, register.ErrOther) {
		t.Errorf("with another history in the log of rooms: %v", err)
	}
}

// TestOwnHost: nobody but this server can have created a room with its host.
func TestOwnHost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	master, err := keys.ParseMasterKey(keys.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	// Its first room was created when it had another address, and the second at a host that it has no more.
	lost, window := "lost.example.com", []room.WindowRule{{Length: room.Duration(time.Hour)}}
	rs := node(t, url, "https://first.example.com", master, nil)
	if _, err := rs.Create(t.Context(), room.Config{Slug: "open", Windows: window}); err != nil {
		t.Fatal(err)
	}
	owner := pgroom.Owner{Org: pgroom.MainOrg, Host: &lost}
	if _, err := rs.CreateFor(t.Context(), owner, room.Config{Slug: "hosted", Windows: window}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err == nil {
		_, err = conn.Exec(t.Context(), `insert into hosts (org_id, host, token, verified_at)
			values ($1, 'custom.example.com', '', now()), ($1, 'claimed.example.com', '', null)`, pgroom.MainOrg)
		err = errors.Join(err, conn.Close(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	rs = node(t, url, "https://new.example.com", master, nil)
	before, err := rs.Register.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"new.example.com", "New.Example.com:443", "new.example.com.:8080", "new.example.com/other",
		"first.example.com", lost, "custom.example.com"} {
		file, _, _ := smallOf(t, own, roomtest.Opens+1, int64(roomtest.Opens)+1)
		if err := export.Import(t.Context(), rs, checked(t, file), here); !errors.Is(err, register.ErrOwn) {
			t.Errorf("%s: %v", own, err)
		}
		if _, err := rs.Get(t.Context(), "sale"); !errors.Is(err, room.ErrNotFound) {
			t.Errorf("%s: the room was stored: %v", own, err)
		}
	}
	if after, err := rs.Register.Checkpoint(t.Context()); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the log of rooms was changed: %v", err)
	}
	file, _, _ := smallOf(t, "claimed.example.com", roomtest.Opens+1, int64(roomtest.Opens)+1)
	if err := export.Import(t.Context(), rs, checked(t, file), here); err != nil {
		t.Errorf("a host that an organization has only claimed: %v", err)
	}
}

// TestFuture lets the operator of the old server sign times that no clock has shown.
func TestFuture(t *testing.T) {
	t.Parallel()
	then, late := int64(roomtest.Opens)+1, time.Now().Add(25*time.Hour).UnixMilli()
	for name, times := range map[string][2]int64{
		"the last entry": {late, then}, "the end": {then, late}, "the year 287396": {1<<53 - 2, 1<<53 - 2},
	} {
		file, _, _ := smallOf(t, "example.com", fairness.Time(times[0]), times[1])
		if c, err := check(t, file); !errors.Is(err, export.ErrFile) || !strings.Contains(err.Error(), "in the future") {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	soon := time.Now().Add(20 * time.Hour).UnixMilli()
	file, _, _ := smallOf(t, "example.com", fairness.Time(soon), soon)
	checked(t, file)
}

// TestRehearsal: a rehearsal stays where it is.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	rs := server(t, "https://old.example.com")
	of := uuid.New()
	if _, err := rs.CreateFor(t.Context(), pgroom.Owner{Org: pgroom.MainOrg, RehearsalOf: &of}, room.Config{Slug: "trial"}); err != nil {
		t.Fatal(err)
	}
	if err := export.Write(t.Context(), rs, "trial", io.Discard, nil); !errors.Is(err, export.ErrRehearsal) {
		t.Error(err)
	}
}

// small returns the export of a small room that no server has made.
func small(t testing.TB) (file []byte, k, of *roomtest.Keys) {
	t.Helper()
	return smallOf(t, "example.com", roomtest.Opens+1, int64(roomtest.Opens)+1)
}

// smallOf is small for a host, with the times of the last entry and of the end in the log of rooms.
func smallOf(t testing.TB, host string, last fairness.Time, ended int64) (file []byte, k, of *roomtest.Keys) {
	t.Helper()
	keysOf := func(origin string) *roomtest.Keys {
		k, err := roomtest.NewKeys(origin, origin)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	list := []member{}
	publish := func(dir string, k *roomtest.Keys, entries [][]byte) audit.Checkpoint {
		files, err := roomtest.Publish(k, entries)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			list = append(list, member{dir + name, files[name]})
		}
		list = append(list, member{dir + "vkey", []byte(k.VKey + "\n")})
		head, err := audit.UnverifiedCheckpoint(files[roomtest.CheckpointPath])
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	k, of = keysOf(host+"/r/sale"), keysOf(host+"/rooms")
	r := roomtest.Open(k, k.Policy())
	r.Join(roomtest.Opens, 3)
	r.Append(&fairness.End{Time: last})
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	head := publish("transcript/", k, r.Entries())
	created := int64(k.Policy().Created)
	var log [][]byte
	for _, e := range []roomlog.Entry{
		{Kind: roomlog.Begin, Time: created, VKey: of.VKey},
		{Kind: roomlog.Room, Time: created, VKey: k.VKey, Root: audit.LeafHash(r.Entries()[0])},
		{Kind: roomlog.End, Time: ended, Room: 1, Size: head.Size, Root: head.Root},
	} {
		log = append(log, e.Append(nil))
	}
	publish("rooms/", of, log)
	file = pack(t, append(list, member{"room.json",
		[]byte(`{"format":"proofline.dev/room-export/1","slug":"sale","title":"Sale","settings":{},"messages":[]}`)}))
	return signed(t, file, k, of), k, of
}

// FuzzCheck: a file either passes, and then it is the room's, or is refused with an error.
func FuzzCheck(f *testing.F) {
	file, _, _ := small(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add(withRecord(f, file, func(r map[string]any) { r["title"] = "Another" }))
	f.Add(pack(f, []member{{"room.json", []byte("{}")}, {"../checkpoint", nil}}))
	want := checked(f, file)
	f.Fuzz(func(t *testing.T, content []byte) {
		c, err := check(t, content)
		if err == nil && (c.Origin != want.Origin || c.Report.Entries != want.Report.Entries) {
			t.Errorf("%+v", c)
		}
	})
}
