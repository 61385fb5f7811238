package demo

import "syscall"

// dies has the kernel end the proxy with the thread that starts it, so that it
// does not outlive a demo that is killed.
func dies() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
