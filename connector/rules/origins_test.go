package rules

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofline/proofline/internal/freeport"
)

// page is the content of the protected page.
const page = "a page of the line"

// spelledPaths are addresses that some servers may treat as /tickets, and some that none should.
func spelledPaths() []string {
	names := []string{
		"tickets", "Tickets", "TICKETS", "%74ickets", "%2574ickets", "tickets.", "tickets..", "tickets%20", "tickets%2e", "tickets%00", "tickets%0a", "tickets~", "tickets::$DATA", "tickets;a=b", "tickets%3b",
		"tickets%252e", "tickets%2520", "t\u0131ckets", "t\u00edckets", "ti\u0301ckets", "tic\u212aets", "ticket\u017f", "\uff54ickets", "%EF%BD%94ickets", "tickets%c0%80", "tickets%e2%80%8b", "tickets%c2%a0", "tic\u00adkets", "tickets#", "tickets%23", "tickets%3f",
	}
	ways := []string{"/%s", "/%s/", "//%s", "/./%s", "/x/../%s", "/x/%%2e%%2e/%s", "/x/..%%2f%s", "/x/%%252e%%252e/%s", `/\%s`, "/%%2f%s", "/%%5c%s", "/;/%s", "/x/..;/%s", "/.%%20/%s", "/x/..%%20/%s", "/x/\uff0e\uff0e/%s", "//x/%s", "/%s/index.html", "/%s%%2findex.html"}
	var list []string
	for _, name := range names {
		for _, way := range ways {
			list = append(list, fmt.Sprintf(way, name))
		}
	}
	return list
}

// TestOrigins requests many spellings of a protected page from real servers. The rules must queue
// or block every spelling for which one of them returns the page.
func TestOrigins(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "tickets"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "tickets", "index.html"), []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, filepath.Dir(root)} { // Apache reads it as another user
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	site := mustParse(t, `{"version":1,`+oneRoom+`,"defaults":"off","rules":[{"name":"t","when":{"path":{"prefix":"/tickets"}},"action":"queue sale"}]}`)
	for name, start := range map[string]func(*testing.T, string) string{"go": goOrigin, "nginx": nginxOrigin, "apache": apacheOrigin, "node": nodeOrigin, "php": phpOrigin} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := start(t, root)
			found := 0
			for _, target := range spelledPaths() {
				if !strings.Contains(ask(t, addr, target), page) {
					continue
				}
				found++
				if d := site.Decide(&Request{Method: http.MethodGet, Host: "shop.example.com", Target: target}, time.Time{}); d.Outcome == Bypass {
					t.Errorf("%q is the page, and the rules let it through", target)
				}
			}
			if found < 3 {
				t.Errorf("%d spellings are the page", found)
			}
			t.Logf("%d of %d spellings are the page", found, len(spelledPaths()))
		})
	}
}

// ask sends a target as it is, follows one redirect, and returns the response.
func ask(t *testing.T, addr, target string) string {
	t.Helper()
	for range 2 {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n", target); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			conn.Close()
			return ""
		}
		body, _ := io.ReadAll(r.Body)
		conn.Close()
		from, err := url.Parse("http://shop.example.com" + target)
		if err != nil || r.Header.Get("Location") == "" {
			return string(body)
		}
		to, err := from.Parse(r.Header.Get("Location"))
		if err != nil {
			return string(body)
		}
		target = to.RequestURI()
	}
	return "" // the rules decide about the redirect's address by itself
}

// origin runs a server until the test ends, and returns once it listens.
func origin(t *testing.T, addr string, name string, args ...string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed: make conformance installs it", name)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // servers also end their workers
	cmd.WaitDelay = 10 * time.Second
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		<-ended
		if t.Failed() {
			t.Logf("%s: %v\n%s", name, cmd.ProcessState, output.String())
		}
	})
	for {
		select {
		case <-ended:
			t.Fatalf("%s ended", name)
		case <-time.After(20 * time.Millisecond):
			if conn, err := net.Dial("tcp", addr); err == nil {
				conn.Close()
				return addr
			}
		}
	}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func goOrigin(t *testing.T, root string) string {
	s := httptest.NewServer(http.FileServer(http.Dir(root)))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func nginxOrigin(t *testing.T, root string) string {
	dir, addr := t.TempDir(), freeport.Addr(t)
	config := file(t, "nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log; events {}
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
types { text/html html; } server { listen %[2]s; root %[3]s; } }`, dir, addr, root))
	return origin(t, addr, "nginx", "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
}

func apacheOrigin(t *testing.T, root string) string {
	dir, addr := t.TempDir(), freeport.Addr(t)
	config := file(t, "httpd.conf", fmt.Sprintf(`ServerRoot %[1]s
PidFile %[1]s/pid
ErrorLog %[1]s/error.log
Listen %[2]s
ServerName shop.example.com
AllowEncodedSlashes On
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
DirectoryIndex index.html
User www-data
Group www-data
DocumentRoot %[3]s
<Directory %[3]s>
Require all granted
</Directory>
`, dir, addr, root))
	return origin(t, addr, "apache2", "-D", "FOREGROUND", "-f", config)
}

// nodeScript responds as many small servers do: it decodes the path and joins it with the folder, and also
// parses it with the class URL.
const nodeScript = `
const http = require("http"), fs = require("fs"), path = require("path");
const [root, port] = process.argv.slice(2);
const read = (p) => { try { p = path.join(root, path.normalize("/" + decodeURIComponent(p))); return fs.readFileSync(fs.statSync(p).isDirectory() ? path.join(p, "index.html") : p, "utf8"); } catch { return ""; } };
http.createServer((request, response) => {
  let pathname = "";
  try { pathname = new URL(request.url, "http://shop.example.com").pathname; } catch {}
  response.end(read(request.url.split("?")[0]) + read(pathname));
}).listen(port, "127.0.0.1");
`

func nodeOrigin(t *testing.T, root string) string {
	addr := freeport.Addr(t)
	_, port, _ := strings.Cut(addr, ":")
	return origin(t, addr, "node", file(t, "server.cjs", nodeScript), root, port)
}

func phpOrigin(t *testing.T, root string) string {
	addr := freeport.Addr(t)
	return origin(t, addr, "php", "-S", addr, "-t", root)
}
