-- +goose Up

-- Beacon rounds that draws wait for. Each can be verified on its own.
create table beacon_rounds (
  chain     bytea  not null check (octet_length(chain) = 32), -- hash
  round     bigint not null,
  signature bytea  not null,
  primary key (chain, round)
);

-- Cosignatures of checkpoints that end with a freeze, kept until the draw adds them to the log.
create table freeze_cosignatures (
  room_id     uuid   not null,
  size        bigint not null, -- of the checkpoint
  witness     text   not null, -- verifier key
  cosignature bytea  not null check (octet_length(cosignature) = 76),
  primary key (room_id, size, witness)
);

grant select, insert on beacon_rounds, freeze_cosignatures to proofline_server;
