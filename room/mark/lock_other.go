//go:build !unix

package mark

import "os"

// tryLock only opens the file: the system has no lock that ends with the process.
func tryLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
