//go:build !linux

package main

import (
	"errors"
	"time"
)

// poller is not available: the generator and the CPU figures need Linux.
type poller struct{}

func newPoller() (*poller, error) { return nil, errors.New("servers are measured on Linux only") }

func (*poller) close() {}

func (*poller) add(int, int) error { return nil }

func (*poller) wait(list []int, _ time.Duration) ([]int, error) { return list, nil }
