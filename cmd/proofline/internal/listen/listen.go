// Package listen contains what commands that listen for connections share.
package listen

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Address returns the host:port at which programs on this machine reach a listener on a.
func Address(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// Serve serves on l until ctx ends, and then waits at most stopping for open requests.
func Serve(ctx context.Context, l net.Listener, stopping time.Duration, server *http.Server) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		stopped <- server.Shutdown(ctx)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}
