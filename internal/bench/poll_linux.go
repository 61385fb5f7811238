package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// poller waits for sockets that can be read.
type poller struct {
	fd     int
	events [256]syscall.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	return &poller{fd: fd}, nil
}

func (p *poller) close() { _ = syscall.Close(p.fd) }

// add watches a socket, which wait then reports as number.
func (p *poller) add(fd, number int) error {
	return syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN,
		Fd: int32(number)})
}

// wait waits for at most d and appends the numbers of readable sockets to list. Short waits use
// select(2), because epoll_wait(2) counts in milliseconds.
func (p *poller) wait(list []int, d time.Duration) ([]int, error) {
	if d > 0 && d < 50*time.Millisecond && p.fd < syscall.FD_SETSIZE {
		var set syscall.FdSet
		set.Bits[p.fd/64] |= 1 << (p.fd % 64) // assumes a 64-bit platform
		limit := syscall.NsecToTimeval(int64(d))
		if _, err := syscall.Select(p.fd+1, &set, nil, nil, &limit); err != nil && !errors.Is(err, syscall.EINTR) {
			return list, fmt.Errorf("select: %w", err)
		}
		d = 0
	}
	n, err := syscall.EpollWait(p.fd, p.events[:], int(d/time.Millisecond))
	if err != nil && !errors.Is(err, syscall.EINTR) {
		return list, fmt.Errorf("epoll_wait: %w", err)
	}
	for _, e := range p.events[:max(n, 0)] {
		list = append(list, int(e.Fd))
	}
	return list, nil
}
