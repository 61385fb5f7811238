package wire

// ReportInput is a connector's report.
type ReportInput struct {
	Node         string            `json:"node" need:"true" doc:"Random ID made when the node starts: 16 bytes as 22 characters of base64url, like every ID here."`
	Site         string            `json:"site" doc:"Site whose rules it runs; empty if they belong to no site of this server."`
	RulesVersion uint64            `json:"rules_version" doc:"Version of these rules."`
	Kind         string            `json:"kind" need:"true" enum:"middleware,proxy,nginx,edge"`
	Version      string            `json:"version" need:"true" doc:"Version of the program."`
	Counts       map[string]uint64 `json:"counts" doc:"Counters by name, since it started."`
	Rooms        []RoomReportInput `json:"rooms" doc:"Reports on rooms, at most 100."`
}

// RoomReportInput is the part of a report about one room.
type RoomReportInput struct {
	Room       string          `json:"room" need:"true" doc:"URL of the room."`
	Mode       string          `json:"mode" enum:"always,scheduled,off,closed,safety-net" doc:"Mode of the room in the rules."`
	Started    []string        `json:"started" doc:"IDs of unqueued sessions that began since the latest answered report. This and the next two lists have at most 2,000 IDs each."`
	Active     []string        `json:"active" doc:"IDs of sessions with activity."`
	Ended      []string        `json:"ended" doc:"IDs of sessions that the site ended."`
	TurnedAway uint64          `json:"turned" doc:"Number of visitors sent to the line because the share was used up, since the latest answered report."`
	FailOpen   []FailOpenInput `json:"fail_open" doc:"Finished fail-open intervals, in which all visitors were let in because the room was out of reach; at most 100."`
}

// FailOpenInput is a finished fail-open interval.
type FailOpenInput struct {
	ID       string `json:"id" need:"true"`
	From     int64  `json:"from" need:"true" doc:"Milliseconds since 1970."`
	Until    int64  `json:"until" need:"true" doc:"Milliseconds since 1970."`
	Requests int64  `json:"requests" need:"true" doc:"Number of requests that were let in."`
}

// Reported is the answer to a report, which holds until the next one.
type Reported struct {
	Rooms     []ReportedRoom `json:"rooms" doc:"Rooms in the order of the report."`
	TokenEnds int64          `json:"token_ends,omitempty" doc:"Expiry of the request's token, in milliseconds since 1970; missing if it never expires."`
}

// ReportedRoom is the part of the answer about one room. If Error is set, the other fields are
// not.
type ReportedRoom struct {
	Room      string    `json:"room" doc:"URL of the room, as reported."`
	Error     string    `json:"error,omitempty" enum:"unknown" doc:"unknown: the organization has no such room."`
	Gate      string    `json:"gate,omitempty" enum:"open,shut" doc:"open: visitors get in without waiting."`
	Share     *uint64   `json:"share,omitempty" doc:"Number of unqueued sessions that may begin on this node until its next report."`
	PerMinute *uint32   `json:"per_minute,omitempty" doc:"Unqueued sessions that may begin per minute, on all nodes together."`
	MaxActive *uint32   `json:"max_active,omitempty" doc:"Maximum number of sessions at once, including those with passes; 0: no limit."`
	Nodes     *uint64   `json:"nodes,omitempty" doc:"Number of nodes that share the remaining capacity: those that reported in the last 10 s."`
	SessionMS *int64    `json:"session_ms,omitempty" doc:"Length of an unqueued session after its latest activity."`
	Recorded  *[]string `json:"recorded,omitempty" doc:"IDs of fail-open intervals that are in the transcript, or were stored after the room had ended."`
	Over      *[]string `json:"over,omitempty" doc:"Sessions, by pass or by their own ID, that the site ended in the last 30 s: the latest 2,000, or fewer per room in a report on more than 15 rooms. Refuse their cookies."`
	ReturnKey string    `json:"return_key,omitempty" doc:"Key that signs return URLs: 32 bytes in base64url."`
	Signed    bool      `json:"signed_return,omitempty" doc:"Whether the room redirects only to signed URLs."`
}
