package demo

import "syscall"

// diesWithParent makes the kernel end the proxy together with the thread that starts
// it, so that the proxy does not outlive a killed demo.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
