package main

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// relay is the network between a node and the database. While it is cut it forwards nothing, and
// neither side learns of that: a connection just falls silent.
type relay struct {
	listener net.Listener

	mu     sync.Mutex // guards the fields below
	back   *sync.Cond // signals the end of a cut
	target string
	cut    bool
	gone   bool // the relay is closed
	ends   map[net.Conn]bool
}

func newRelay(target string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed by close
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, target: target, ends: map[net.Conn]bool{}}
	r.back = sync.NewCond(&r.mu)
	go func() {
		for {
			node, err := listener.Accept()
			switch {
			case err == nil:
				go r.connect(node)
			case errors.Is(err, net.ErrClosed):
				return
			default:
				time.Sleep(100 * time.Millisecond) // there may be too many open files
			}
		}
	}()
	return r, nil
}

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) connect(node net.Conn) {
	if !r.passes() {
		_ = node.Close()
		return
	}
	r.mu.Lock()
	target := r.target
	r.mu.Unlock()
	database, err := net.DialTimeout("tcp", target, 5*time.Second) //nolint:noctx // bounded
	if err != nil {
		_ = node.Close()
		return
	}
	if !r.keep(node, database) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { r.pump(database, node) })
	both.Go(func() { r.pump(node, database) })
	both.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, node)
	delete(r.ends, database)
}

// keep records both ends of a connection, or closes them if the relay is closed.
func (r *relay) keep(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range ends {
		if r.ends[end] = true; r.gone {
			_ = end.Close()
		}
	}
	return !r.gone
}

// pump copies one direction of a connection, including its end.
func (r *relay) pump(to, from net.Conn) {
	defer to.Close()
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if !r.passes() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				_, _ = io.Copy(io.Discard, from)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// passes waits while the network is cut, and reports whether the relay still works.
func (r *relay) passes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.cut && !r.gone {
		r.back.Wait()
	}
	return !r.gone
}

// set cuts the network, or mends it.
func (r *relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
	r.back.Broadcast()
}

// lead leads to another database, and closes all connections.
func (r *relay) lead(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	r.closeEnds()
}

func (r *relay) closeEnds() {
	for end := range r.ends {
		_ = end.Close()
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	r.closeEnds()
	r.back.Broadcast()
}
