//go:build !linux

package demo

import "syscall"

// diesWithParent does nothing here: a killed demo leaves its proxy running.
func diesWithParent() *syscall.SysProcAttr { return nil }
