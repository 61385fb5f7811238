//go:build unix

package localpg

import (
	"context"
	"net"
	"path/filepath"
	"time"
)

// Running returns a server that another process runs in a data directory; only its URLs can be
// used. It returns false if none accepts connections.
func Running(ctx context.Context, dir string) (*Server, bool) {
	s := &Server{socket: socket{dir: filepath.Join(dir, "run")}}
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join(s.socket.dir, socketFile))
	if err != nil {
		return nil, false
	}
	_ = conn.Close()
	return s, true
}
