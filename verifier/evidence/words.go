package evidence

import "time"

// formatTime formats milliseconds since the Unix epoch.
func formatTime(ms uint64) string {
	return time.UnixMilli(int64(min(ms, 1<<53))).UTC().Format("2006-01-02 15:04:05 UTC")
}
