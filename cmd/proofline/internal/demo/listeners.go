package demo

import (
	"context"
	"net"
	"net/http"
	"time"
)

// listeners serve what runs in this process besides the server: the shop, the beacon and the
// witnesses.
type listeners struct{ stops []func() }

// listen serves a handler on a free port of this machine.
func (l *listeners) listen(h http.Handler) (url string, err error) {
	tcp, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(tcp) // until stop closes it
	}()
	l.stops = append(l.stops, func() {
		_ = server.Close()
		<-ended
	})
	return "http://" + tcp.Addr().String(), nil
}

func (l *listeners) stop() {
	for _, stop := range l.stops {
		stop()
	}
}
