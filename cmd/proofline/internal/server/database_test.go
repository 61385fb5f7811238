package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/pgtest"
	"github.com/proofline/proofline/room/keys"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }

// TestPrivateDatabase: a session at the private PostgreSQL cannot regain the role
// of the superuser that created it.
func TestPrivateDatabase(t *testing.T) {
	database := pgtest.Start(t, "fsync = off") // only for its directory, which the user postgres can enter
	database.Stop()
	var log bytes.Buffer
	s, err := Start(t.Context(),
		Config{Addr: "127.0.0.1:0", Data: database.Dir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, way := range []string{
		"reset role", "set role postgres", "set session authorization postgres", "reset session authorization",
	} {
		for _, change := range []string{
			"update log_bundles set entries = '\\x0000'", "delete from log_bundles", "truncate log_bundles, log_tile_roots",
		} {
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				_, _ = tx.Exec(t.Context(), "savepoint before")
				if _, err := tx.Exec(t.Context(), way); err != nil {
					_, _ = tx.Exec(t.Context(), "rollback to before")
				}
				_, err := tx.Exec(t.Context(), change)
				return err
			})
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.Code != "42501" { // insufficient_privilege
				t.Errorf("%s; %s: %v, want insufficient privilege", way, change, err)
			}
		}
	}
	if strings.Contains(log.String(), "could change its transcripts") {
		t.Errorf("the server warns about the role that it created itself: %s", log.String())
	}
}

// TestSetupLink: until it is used, the link for the first owner is in a file that
// only the data directory's owner may read.
func TestSetupLink(t *testing.T) {
	url, dir := pgtest.URL(t), t.TempDir()
	start := func() *Server {
		s, err := Start(t.Context(), Config{
			Addr: "127.0.0.1:0", Data: dir, DatabaseURL: url, MasterKey: masterKey, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stop := func(s *Server) {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	first := start()
	stop(first)
	s := start() // replaces the earlier link
	defer stop(s)
	kept, err := secret.Read(filepath.Join(dir, SetupFile)) // refuses files that others can read
	if err != nil || kept != s.SetupLink || kept == first.SetupLink || s.SetupFile != filepath.Join(dir, SetupFile) {
		t.Fatalf("%s has %q, %v, want %q", s.SetupFile, kept, err, s.SetupLink)
	}
	_, token, _ := strings.Cut(kept, "#t=")
	owner := account.NewPerson{
		OrgName: "Halls", Email: "owner@example.com", Name: "Owner", Password: "correct battery horse",
	}
	if _, err := s.organizers.accounts.Invitations.Accept(t.Context(), token, owner, account.Client{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.SetupFile); !os.IsNotExist(err) {
		t.Errorf("the link was used, but its file still exists: %v", err)
	}
	if err := secret.Create(s.SetupFile, "another node's link"); err != nil {
		t.Fatal(err)
	}
	again := start()
	defer stop(again)
	if _, err := os.Stat(s.SetupFile); !os.IsNotExist(err) || again.SetupLink != "" {
		t.Errorf("the organization has an owner, but there is a file (%v) or a link (%q)", err, again.SetupLink)
	}
}

var masterKey = keys.NewMasterKey()

// TestOwnDatabase: the server warns about a login role that can change the log, but
// not about one that cannot and leaves migrations to the owner.
func TestOwnDatabase(t *testing.T) {
	url := pgtest.URL(t)
	server := pgtest.AsServer(url)
	if server == url {
		t.Skip("in the given database the server's role needs a password")
	}
	for _, test := range []struct {
		login, owner string
		warns        bool
	}{{url, "", true}, {server, url, false}, {server, "", false}} {
		var log bytes.Buffer
		s, err := Start(t.Context(), Config{
			Addr: "127.0.0.1:0", Data: t.TempDir(), DatabaseURL: test.login, OwnerURL: test.owner,
			MasterKey: keys.NewMasterKey(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if got := strings.Contains(log.String(), "could change its transcripts"); got != test.warns {
			t.Errorf("as %s: warns %v, want %v: %s", test.login, got, test.warns, log.String())
		}
	}
	ownerOnly := Config{Addr: "127.0.0.1:0", Data: t.TempDir(), OwnerURL: url, Log: slog.New(slog.DiscardHandler)}
	if _, err := Start(t.Context(), ownerOnly); !errors.Is(err, ErrNoDatabase) {
		t.Errorf("an owner's URL alone: %v, want ErrNoDatabase", err)
	}
}

// TestDatabaseGone: if the database ends a connection during the migrations, as in a failover, the start
// begins again instead of failing.
func TestDatabaseGone(t *testing.T) {
	u, err := url.Parse(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if !strings.HasPrefix(q.Get("host"), "/") {
		t.Skip("the given database has no socket")
	}
	socket := filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port"))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var cuts atomic.Int32
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go cutOnce(client, socket, []byte("has_schema_privilege"), &cuts)
		}
	}()
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	q.Set("host", host)
	q.Set("port", port)
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	s, err := Start(t.Context(), Config{
		Addr: "127.0.0.1:0", Data: t.TempDir(), DatabaseURL: u.String(), MasterKey: masterKey,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if cuts.Load() == 0 {
		t.Error("no connection was ended: nothing was tested")
	}
}

// cutOnce connects a client to a socket. The first connection on which the client sends a text is closed.
func cutOnce(client net.Conn, socket string, text []byte, cuts *atomic.Int32) {
	defer client.Close()
	database, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer database.Close()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, database)
	}()
	for buffer := make([]byte, 64<<10); ; {
		n, err := client.Read(buffer)
		if bytes.Contains(buffer[:n], text) && cuts.Add(1) == 1 {
			return
		}
		if _, errWrite := database.Write(buffer[:n]); err != nil || errWrite != nil {
			return
		}
	}
}
