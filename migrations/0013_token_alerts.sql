-- +goose Up

-- Organizations that are told of everything are told of tokens that end, too.
update hook_alerts set kinds = array_append(kinds, 'token_ends')
where kinds @> '{fork_seen,beacon_late,database,room_paused,room_ended,outflow_behind,no_shows,line_full,endpoint_disabled}' and not 'token_ends' = any (kinds);
