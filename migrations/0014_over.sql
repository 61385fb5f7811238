-- +goose Up

-- The time at which the site ended a free session early, in milliseconds since the Unix epoch;
-- null: not ended early.
alter table room_free_sessions add column ended_ms bigint;

-- Sessions recently ended by a site, to be reported to all its connectors.
create index room_free_sessions_ended on room_free_sessions (room_id, ended_ms) where ended_ms is not null;
create index room_sessions_released on room_sessions (room_id, released_at) where released_at is not null;
