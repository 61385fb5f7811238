package console

import (
	"fmt"
	"strconv"
	"strings"
)

// fieldNames are the members of a room's configuration as the forms call them.
var fieldNames = map[string]string{
	"title": "Title", "slug": "Address, last part", "host": "Host", "opens": "Opens", "starts": "Starts", "closes": "Closes", "time_zone": "Time zone of the event",
	"windows": "Windows", "outflow": "How fast people are let in", "outflow.per_minute": "People per minute", "outflow.max_active": "At most at once",
	"claim": "Time to go in", "session": "Time in the shop", "beacon": "Beacon", "quorum": "Witnesses who should sign", "margin": "Margin before the beacon's round",
	"max_waiting": "Most people in line", "targets": "Addresses of the shop", "signed_return": "Back to signed pages alone", "brand": "Brand", "message": "Message",
}

// fieldName is a member of a room's configuration as the forms call it: rows of
// lists by their number from 1. What no form has stays as it is.
func fieldName(field string) string {
	if name, ok := fieldNames[field]; ok {
		return name
	}
	list, rest, ok := strings.Cut(field, "[")
	name := fieldNames[list]
	if index, _, closed := strings.Cut(rest, "]"); ok && closed && name != "" {
		if i, err := strconv.Atoi(index); err == nil {
			return fmt.Sprintf("%s, row %d", name, i+1)
		}
	}
	parent := field[:max(0, strings.LastIndexByte(field, '.'))]
	if parent != "" {
		return fieldName(parent)
	}
	return field
}
