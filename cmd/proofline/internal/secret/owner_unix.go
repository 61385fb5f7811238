//go:build unix

package secret

import (
	"io/fs"
	"syscall"
)

func ofRoot(info fs.FileInfo) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	return ok && of.Uid == 0
}
