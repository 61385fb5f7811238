//go:build !linux

package demo

import "syscall"

// dies does nothing here: a demo that is killed leaves its proxy behind.
func dies() *syscall.SysProcAttr { return nil }
