// Package recent counts events of the last 60 seconds or minutes.
package recent

// Counts counts events of the last 60 seconds, or minutes, one slot for each. The zero value is ready.
type Counts struct {
	at [60]int64 // second or minute that the slot counts, since 1970
	n  [60]int
}

// Add counts an event.
func (r *Counts) Add(now int64) {
	i := now % 60
	if r.at[i] != now {
		r.at[i], r.n[i] = now, 0
	}
	r.n[i]++
}

// Count returns the number of events in the last 60 seconds or minutes.
func (r *Counts) Count(now int64) (all int) {
	for i, at := range r.at {
		if age := now - at; age >= 0 && age < 60 {
			all += r.n[i]
		}
	}
	return all
}
