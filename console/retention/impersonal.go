package retention

// Table is what is not personal in a table.
type Table struct {
	Name, Columns string
	Holds         string // empty: times, states and numbers of what [Rules] says
}

// Impersonal are the columns of the database that say nothing about persons.
var Impersonal = []Table{
	{"activity_log", "org_id entry_id at actor_kind verb outcome", ""},
	{"alert_settings", "org_id endpoints kinds no_shows since", ""},
	{"alerts_sent", "org_id kind room at", "when an alert was sent, about which room"},
	{"attempts", "level at next_at", ""},
	{"beacon_rounds", "chain round signature", "public randomness"},
	{"clock_confirmations", "id confirmed_at", "jumps of the clock"},
	{"clock_views", "node_id raw_ms step_ms agrees", "clocks of servers"},
	{"connectors", "org_id node site rules_version kind version counts seen_at",
		"processes of connectors, with counts"},
	{"deliveries", "org_id delivery_id target type room created_at state tries attempts due_at leased_until", ""},
	{"delivery_attempts", "org_id delivery_id number at took_ms status", ""},
	{"drafts", "org_id draft_id config version created_at changed_at", ""},
	{"former_identities", "removed_at", ""},
	{"freeze_cosignatures", "room_id size witness cosignature", "signatures of witnesses"},
	{"goose_db_version", "id version_id is_applied tstamp", "migrations that were applied"},
	{"hosts", "org_id host token verified_at", "host names of organizations"},
	{"idempotency_keys", "org_id status created_at", ""},
	{"identities", "issuer", ""},
	{"invitations", "org_id invitation_id role setup recovers created_at expires_at", ""},
	{"live_minutes", "room_id at arrivals drawn called admitted no_shows gone waiting active peak per_minute " +
		"max_active paused",
		"counts per minute"},
	{"log_bundles", "room_id first count entries",
		"the transcripts: tickets, which only their holders can link to a person, and nullifiers, which only their issuer can"},
	{"log_entries", "room_id index entry", "a view of the transcripts"},
	{"log_heads", "room_id size root time_ms checkpoint published_size published published_at held_size " +
		"held_root held_by overruled abandoned archived",
		"sizes, roots and checkpoints of the transcripts"},
	{"log_nodes", "node_id compared settled", "processes of servers"},
	{"log_tile_roots", "room_id level index hash", "hashes of the transcripts"},
	{"members", "org_id role created_at", ""},
	{"nodes", "node_id name version started_at seen_at healthy rooms goroutines heap ahead_ms refused",
		"processes of servers"},
	{"organizations", "org_id slug name created_at max_rooms max_waiting max_streams max_entries logo logo_type " +
		"logo_image require_second_factor",
		"names, limits and logos of organizations"},
	{"people", "factor_step created_at", ""},
	{"room_connectors", "room_id node seen_ms", "processes of connectors"},
	{"room_fail_open", "room_id report_id from_ms until_ms requests claim claimed_at recorded_at",
		"intervals of time, with numbers of requests"},
	{"room_flow", "room_id pull", "who calls visitors: the clock or a backend"},
	{"room_free_sessions", "room_id began_ms until_ms ended_ms", ""},
	{"room_keys", "room_id purpose sealed", "sealed keys of rooms"},
	{"room_log", "is_only origin sealed", "the log of rooms"},
	{"room_messages", "room_id hash text", "messages that the organizer publishes"},
	{"room_pass_keys", "room_id key_id sealed created_at", "sealed keys of rooms"},
	{"room_reports", "room_id made_at entries level html", "audit reports, made of transcripts"},
	{"room_sessions", "room_id expires_ms until_ms redeemed_at released_at", ""},
	{"room_summaries", "room_id summary made_at", "counts, made of transcripts"},
	{"room_transfers", "room_id expires_at", ""},
	{"rooms", "room_id slug origin title created_at ended_at settings settings_version org_id host " +
		"archived_at rehearsal_of vkey",
		"names, settings and texts that the organizer publishes"},
	{"schema_floor", "only_row floor", "the oldest version that works"},
	{"sessions", "session_id org_id created_at seen_at confirmed_at", ""},
	{"site_keys", "org_id name sealed created_at", "sealed keys of organizations"},
	{"site_versions", "org_id site version rules changed_at", ""},
	{"sites", "org_id site version hosts rooms deleted_at", "names, hosts and rooms of sites"},
	{"tokens", "org_id token_id scopes created_at expires_at used_at", ""},
	{"transcript_cursors", "room_id org_id next state done looked_at",
		"how far transcripts were turned into webhooks"},
	{"webhook_endpoints", "org_id endpoint_id events rooms secret former_secret former_until disabled created_at " +
		"since failures failing_since",
		""},
}
