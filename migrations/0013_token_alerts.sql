-- +goose Up

-- Organizations with all earlier kinds of alerts enabled get alerts about expiring tokens, too.
update alert_settings set kinds = array_append(kinds, 'token_ends')
where kinds @> '{fork_seen,beacon_late,database,room_paused,room_ended,outflow_behind,no_shows,line_full,endpoint_disabled}' and not 'token_ends' = any (kinds);
