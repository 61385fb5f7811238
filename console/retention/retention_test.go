package retention_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/console/retention"
	"github.com/proofline/proofline/console/webhook/pgwebhook"
	"github.com/proofline/proofline/internal/personal"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/internal/servertest"
	"github.com/proofline/proofline/room/pgroom"
)

var update = flag.Bool("update", false, "write docs/operate/PRIVACY.md anew")

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// kit is a database with the pool of a server, which may do what servers may, and one of its owner.
type kit struct {
	t             *testing.T
	server, owner *pgxpool.Pool
}

func newKit(t *testing.T) *kit {
	t.Helper()
	url := pgtest.URL(t)
	k := &kit{t: t, server: servertest.Pool(t, url)}
	var err error
	if k.owner, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.owner.Close)
	return k
}

// job returns the job of a server that keeps personal data for so long.
func (k *kit) job(keep retention.Keep) *retention.Job {
	return retention.New(retention.Options{Store: personal.NewStore(k.server), Keep: keep, Log: slog.New(slog.DiscardHandler)})
}

func (k *kit) exec(statement string, args ...any) {
	k.t.Helper()
	if _, err := k.owner.Exec(k.t.Context(), statement, args...); err != nil {
		k.t.Fatalf("%s: %v", statement, err)
	}
}

func (k *kit) delete(j *retention.Job) {
	k.t.Helper()
	if err := j.Delete(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func value[T any](k *kit, query string, args ...any) (v T) {
	k.t.Helper()
	if err := k.owner.QueryRow(k.t.Context(), query, args...).Scan(&v); err != nil {
		k.t.Fatalf("%s: %v", query, err)
	}
	return v
}

// column is a column of the schema.
type column struct {
	Table, Name, Type    string
	IsNullable, IsView   bool
	HasDefault, IsAlways bool
}

func (c column) String() string { return c.Table + "." + c.Name }

func (k *kit) columns() []column {
	k.t.Helper()
	rows, _ := k.owner.Query(k.t.Context(), `select c.table_name, c.column_name, c.udt_name, c.is_nullable = 'YES',
			t.table_type = 'VIEW', c.column_default is not null, c.is_identity = 'YES'
		from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
		where table_schema = current_schema() order by c.table_name, c.ordinal_position`)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	if err != nil || len(list) == 0 {
		k.t.Fatal(list, err)
	}
	return list
}

// declared returns how often each column is declared, by its name with the table.
func declared() (isPersonal, isImpersonal map[string]int) {
	isPersonal, isImpersonal = map[string]int{}, map[string]int{}
	for _, r := range retention.Rules {
		for _, name := range r.Columns {
			isPersonal[r.Table+"."+name]++
		}
	}
	for _, table := range retention.Impersonal {
		for name := range strings.FieldsSeq(table.Columns) {
			isImpersonal[table.Name+"."+name]++
		}
	}
	return isPersonal, isImpersonal
}

// TestColumns checks that each column of the schema is declared once: as personal, with a rule for it, or as
// impersonal.
func TestColumns(t *testing.T) {
	t.Parallel()
	isPersonal, isImpersonal := declared()
	exists := map[string]bool{}
	for _, c := range newKit(t).columns() {
		name := c.String()
		exists[name] = true
		switch isPersonal[name] + isImpersonal[name] {
		case 0:
			t.Errorf("%s is new: if it says nothing about persons, add it to retention.Impersonal, and if it does, to the rule "+
				"for its table in the package that owns it, which says until when the server keeps it", name)
		case 1:
		default:
			t.Errorf("%s is declared twice", name)
		}
	}
	for _, list := range []map[string]int{isPersonal, isImpersonal} {
		for name := range list {
			if !exists[name] {
				t.Errorf("%s is declared, and does not exist", name)
			}
		}
	}
}

// filled are rows full of markers, one in each table of the rules.
type filled struct {
	ids     map[string]uuid.UUID // by name of a column, in all tables that have it
	markers map[string]uuid.UUID // by column
}

// fill stores a row in each table with personal data: a marker in each personal column, and times of long ago.
func (k *kit) fill(at time.Time) filled {
	k.t.Helper()
	f := filled{map[string]uuid.UUID{"org_id": pgroom.MainOrg, "person_id": uuid.New(), "delivery_id": uuid.New(),
		"endpoint_id": uuid.New()}, map[string]uuid.UUID{}}
	isPersonal, _ := declared()
	names, values, args := map[string][]string{}, map[string][]string{}, map[string][]any{}
	for _, c := range k.columns() {
		if !slices.ContainsFunc(retention.Rules, func(r personal.Rule) bool { return r.Table == c.Table }) {
			continue
		}
		v := k.valueOf(c, f, isPersonal[c.String()] > 0, at)
		if v == nil {
			continue
		}
		args[c.Table] = append(args[c.Table], v)
		names[c.Table] = append(names[c.Table], c.Name)
		values[c.Table] = append(values[c.Table], fmt.Sprintf("$%d::%s", len(args[c.Table]), c.Type))
	}
	for table := range args {
		k.exec("insert into "+table+" ("+strings.Join(names[table], ", ")+") values ("+strings.Join(values[table], ", ")+")",
			args[table]...)
	}
	return f
}

// choices are values that a table's checks want.
var choices = map[string]any{"members.role": "viewer", "invitations.role": "viewer", "activity_log.actor_kind": "person",
	"activity_log.outcome": "done", "deliveries.state": "delivered", "site_versions.site": "site", "alert_settings.no_shows": 30}

// valueOf returns the value for a column; nil: its default.
func (k *kit) valueOf(c column, f filled, isPersonal bool, at time.Time) any {
	k.t.Helper()
	id, isID := f.ids[c.Name]
	if !isID {
		id = uuid.New()
	}
	if isPersonal {
		f.markers[c.String()] = id
	}
	choice, isChosen := choices[c.String()]
	isTime := c.Type == "timestamptz" && c.Name != "due_at" && c.Name != "leased_until"
	switch {
	case isChosen:
		return choice
	case isTime:
		return at
	case strings.HasSuffix(c.Name, "_ms"):
		return at.UnixMilli()
	case !isPersonal && (c.IsNullable || c.HasDefault):
		return nil
	case c.Type == "uuid":
		return id.String()
	case c.Type == "text":
		return id.String()
	case c.Type == "_text":
		return []string{id.String()}
	case c.Type == "_uuid":
		return []string{}
	case c.Type == "jsonb":
		return `{"` + id.String() + `": 1}`
	case c.Type == "bytea" && c.Name == "redeemed_by":
		return id[:]
	case c.Type == "bytea":
		return append(id[:], id[:]...)
	case c.Type == "bool":
		return false
	case c.Type == "int2" || c.Type == "int4" || c.Type == "int8" || c.Type == "float8":
		return 1
	}
	k.t.Fatalf("%s: no value for a column of the type %s", c, c.Type)
	return nil
}

// search returns the markers that the database still has, with the columns where they are.
func (k *kit) search(f filled) map[string]string {
	k.t.Helper()
	found := map[string]string{}
	for _, c := range k.columns() {
		if c.IsView {
			continue
		}
		rows, _ := k.owner.Query(k.t.Context(), "select t."+c.Name+"::text from "+c.Table+" t where t."+c.Name+" is not null")
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			k.t.Fatal(err)
		}
		all := strings.ToLower(strings.Join(list, "\n"))
		for marked, id := range f.markers {
			if strings.Contains(all, id.String()) || strings.Contains(all, hex.EncodeToString(id[:])) {
				found[marked] = strings.TrimSpace(found[marked] + " " + c.String())
			}
		}
	}
	return found
}

// removals are how an organization removes what no time limits.
var removals = map[string]func(context.Context, *pgxpool.Pool, filled) error{
	"people": removePerson, "members": removePerson, "recovery_codes": removePerson, "identities": removePerson,
	"alert_settings": func(ctx context.Context, pool *pgxpool.Pool, f filled) error {
		return pgwebhook.NewStore(pool).AlertSettings.Delete(ctx, f.ids["org_id"])
	},
	"webhook_endpoints": func(ctx context.Context, pool *pgxpool.Pool, f filled) error {
		return pgwebhook.NewStore(pool).Endpoints.Delete(ctx, f.ids["org_id"], f.ids["endpoint_id"])
	},
}

func removePerson(ctx context.Context, pool *pgxpool.Pool, f filled) error {
	err := pgaccount.NewStore(pool).Members.Remove(ctx, f.ids["org_id"], f.ids["person_id"], time.Now())
	if errors.Is(err, pgaccount.ErrNotFound) {
		err = nil // another table's removal
	}
	return err
}

const day = 24 * time.Hour

// TestDelete fills each personal column with a marker, lets the organization remove what no time limits, runs the job,
// and searches the whole database for the markers.
func TestDelete(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	f := k.fill(time.Now().Add(-100 * day))
	k.exec(`insert into log_bundles (room_id, first, count, entries) values ($1, 0, 1, $2)`, uuid.New(), []byte("\x00\x05entry"))
	before := k.search(f)
	for name := range f.markers {
		if !strings.Contains(before[name], name) {
			t.Fatalf("the marker of %s is not found: %q", name, before[name])
		}
	}
	for _, r := range retention.Rules {
		if r.Due != "" {
			continue
		}
		remove, ok := removals[r.Table]
		if !ok {
			t.Fatalf("nothing removes what %s holds", r.Table)
		}
		if err := remove(t.Context(), k.server, f); err != nil {
			t.Fatalf("%s: %v", r.Table, err)
		}
	}
	j := k.job(retention.Default)
	due, err := j.Preview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.delete(j)
	if left := k.search(f); len(left) > 0 {
		t.Errorf("markers are left: %v", left)
	}
	deleted := j.Deleted()
	want := map[string]uint64{}
	for _, d := range due {
		want[d.Name] += uint64(d.Count)
	}
	want["tokens"] = 2     // blanked, then deleted
	want["deliveries"] = 1 // its attempts go first
	want["sessions"] = 0   // went with the account
	if diff := cmp.Diff(want, deleted); diff != "" {
		t.Errorf("deleted (-preview +deleted):\n%s", diff)
	}
	if n := value[int](k, `select count(*) from log_bundles`); n != 1 {
		t.Error("the job touched the transcript")
	}
	for _, table := range []string{"drafts", "site_versions"} {
		if by := value[string](k, `select changed_by from `+table); by != personal.Someone {
			t.Errorf("%s: changed by %q", table, by)
		}
	}
	k.delete(j)
	if diff := cmp.Diff(deleted, j.Deleted()); diff != "" {
		t.Errorf("a second run (-before +after):\n%s", diff)
	}
}

// TestKept checks that nothing is deleted before its time.
func TestKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keep retention.Keep
		age  time.Duration
		gone []string // tables whose rows end by themselves
	}{
		"young": {retention.Default, -time.Hour, nil},
		"middle": {retention.Default, 80 * day, []string{"attempts", "idempotency_keys", "invitations", "room_transfers", "sessions",
			"tokens"}},
		"forever": {retention.Forever, 1000 * day, []string{"attempts", "idempotency_keys", "invitations", "room_transfers",
			"sessions", "tokens"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			f := k.fill(time.Now().Add(-c.age))
			j := k.job(c.keep)
			k.delete(j)
			var gone []string
			left := k.search(f)
			for marked := range f.markers {
				if _, ok := left[marked]; !ok {
					table, _, _ := strings.Cut(marked, ".")
					gone = append(gone, table)
				}
			}
			slices.Sort(gone)
			if diff := cmp.Diff(c.gone, slices.Compact(gone)); diff != "" {
				t.Errorf("gone (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGrants checks that a server can delete neither traces of the latest day nor passes that could be redeemed again.
func TestGrants(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.fill(time.Now().Add(-time.Hour))
	for _, table := range []string{"activity_log", "room_sessions"} {
		tag, err := k.server.Exec(t.Context(), "delete from "+table)
		if err != nil || tag.RowsAffected() != 0 {
			t.Errorf("%s: the server deleted %d rows, %v", table, tag.RowsAffected(), err)
		}
	}
}

// TestBusy checks that a server leaves the work to the one that does it.
func TestBusy(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	f := k.fill(time.Now().Add(-100 * day))
	tx, err := k.owner.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock(hashtextextended('proofline personal data in ' ||
		current_schema(), 0))`); err != nil {
		t.Fatal(err)
	}
	j := k.job(retention.Default)
	k.delete(j)
	if left := k.search(f); len(left) != len(f.markers) || j.Failing() != 0 {
		t.Errorf("%d of %d markers are left, failing for %v", len(left), len(f.markers), j.Failing())
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.delete(j)
	if n := j.Deleted()["activity_log"]; n != 1 {
		t.Errorf("%d entries deleted afterwards", n)
	}
}

// TestBatches deletes more rows than a transaction does.
func TestBatches(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.exec(`insert into attempts (key, level, at, next_at)
		select sha256(n::text::bytea), 1, now() - interval '10 days', now() from generate_series(1, 2500) n`)
	j := k.job(retention.Forever)
	k.delete(j)
	if n := j.Deleted()["attempts"]; n != 2500 {
		t.Errorf("%d attempts deleted", n)
	}
}

// TestFailing checks that a job that does not work says for how long.
func TestFailing(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	now := time.Now()
	j := retention.New(retention.Options{Store: personal.NewStore(k.server), Keep: retention.Default,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	k.exec(`revoke delete on activity_log from proofline_server`)
	f := k.fill(now.Add(-100 * day))
	if err := j.Delete(t.Context()); err == nil || !strings.Contains(err.Error(), "activity_log") {
		t.Errorf("error %v, want one about activity_log", err)
	}
	if _, ok := k.search(f)["invitations.email"]; ok {
		t.Error("a table that cannot be changed stops the others")
	}
	now = now.Add(time.Hour)
	if d := j.Failing(); d != time.Hour {
		t.Errorf("failing for %v, want 1h", d)
	}
	k.exec(`grant delete on activity_log to proofline_server`)
	k.delete(j)
	if d := j.Failing(); d != 0 {
		t.Errorf("failing for %v, want 0", d)
	}
}

// TestAheadClock checks that this machine's clock deletes nothing before its time if it alone is ahead.
func TestAheadClock(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	f := k.fill(time.Now().Add(-10 * day))
	j := retention.New(retention.Options{Store: personal.NewStore(k.server), Keep: retention.Default,
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Now().Add(1000 * day) }})
	k.delete(j)
	if _, ok := k.search(f)["activity_log.actor"]; !ok {
		t.Error("a server whose clock is ahead deletes")
	}
}

// TestRoomsClock checks that the rooms' time counts where both other clocks are ahead.
func TestRoomsClock(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	f := k.fill(time.Now().Add(-100 * day))
	j := retention.New(retention.Options{Store: personal.NewStore(k.server), Keep: retention.Default,
		Log: slog.New(slog.DiscardHandler), Rooms: func() (ahead, step time.Duration) { return -20 * day, 0 }})
	k.delete(j)
	if _, isLeft := k.search(f)["activity_log.actor"]; !isLeft {
		t.Error("deleted before the rooms' time")
	}
}

// TestRounds checks when a job deletes by itself: not in the first hour, nor while rooms refuse the database's clock.
func TestRounds(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.fill(time.Now().Add(-100 * day))
	for _, c := range []struct {
		name          string
		settled, step time.Duration
		want          uint64
	}{
		{"at the start", 0, 0, 0},
		{"the database's clock has jumped", -1, time.Hour, 0},
		{"settled", -1, 0, 1},
	} {
		j := retention.New(retention.Options{Store: personal.NewStore(k.server), Keep: retention.Default,
			Log: slog.New(slog.DiscardHandler), Settled: c.settled,
			Rooms: func() (ahead, step time.Duration) { return 0, c.step }})
		j.Round(t.Context())
		if n := j.Deleted()["activity_log"]; n != c.want {
			t.Errorf("%s: %d entries deleted, want %d", c.name, n, c.want)
		}
	}
}

func TestParseKeep(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1d", "90d", "36500d", "forever"} {
		if k, err := retention.ParseKeep(text); err != nil || k.String() != text {
			t.Errorf("%s: %v, %v", text, k, err)
		}
	}
	for _, text := range []string{"", "0d", "-1d", "90", "d", "1.5d", "090d", "+1d", "36501d", "24h", "Forever", "99999999999999999999d"} {
		if _, err := retention.ParseKeep(text); !errors.Is(err, retention.ErrKeep) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzParseKeep(f *testing.F) {
	f.Add("90d")
	f.Add("forever")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := retention.ParseKeep(text); err == nil && k.String() != text {
			t.Errorf("%q is %v", text, k)
		}
	})
}

// TestDocs compares the tables of PRIVACY.md with the rules; -update writes them.
func TestDocs(t *testing.T) {
	t.Parallel()
	var rules, others strings.Builder
	rules.WriteString("| table | what it holds | kept |\n|---|---|---|\n")
	for _, r := range retention.Rules {
		fmt.Fprintf(&rules, "| `%s`: %s | %s | %s |\n", r.Table, "`"+strings.Join(r.Columns, "`, `")+"`", r.Holds, r.Until)
	}
	others.WriteString("| table | what it holds |\n|---|---|\n")
	for _, table := range retention.Impersonal {
		if table.Holds != "" {
			fmt.Fprintf(&others, "| `%s` | %s |\n", table.Name, table.Holds)
		}
	}
	const path = "../../docs/operate/PRIVACY.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := text
	for _, section := range slices.Sorted(maps.Keys(map[string]bool{"personal": true, "impersonal": true})) {
		table := map[string]string{"personal": rules.String(), "impersonal": others.String()}[section]
		begin, end := []byte("<!-- "+section+" -->\n"), []byte("<!-- /"+section+" -->")
		before, rest, ok := bytes.Cut(want, begin)
		_, after, ok2 := bytes.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no section %s", path, section)
		}
		want = slices.Concat(before, begin, []byte(table), end, after)
	}
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(want, text) {
		t.Errorf("%s is out of date: run go test ./console/retention -run TestDocs -update", path)
	}
}
