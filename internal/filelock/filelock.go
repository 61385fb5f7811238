// Package filelock keeps a second process from using the same files.
package filelock

import "errors"

// ErrLocked is returned when another process has the lock.
var ErrLocked = errors.New("in use by another process")
