import { readFileSync } from "node:fs";

// Tests run in web/ui; the vectors are those of the Go packages.

/** Reads a file of vectors by its path from the top of the repository. */
function read<T>(path: string): T {
  return JSON.parse(readFileSync(`../../${path}`, "utf8")) as T;
}

export interface AuditVectors {
  origin: string;
  seed: string;
  vkey: string;
  leaves: { entry: string; hash: string }[];
  roots: { size: number; root: string }[];
  inclusion: { index: number; size: number; path: string[] }[];
  consistency: { old: number; size: number; path: string[] }[];
  checkpoints: { size: number; text: string; signed: string }[];
  proofs: { index: number; size: number; extra: string; text: string }[];
  tile_paths: { level: number; index: number; width: number; path: string }[];
  tiles: { old: number; size: number; paths: string[] }[];
  bundles: { entries: string[]; bundle: string }[];
  refused: {
    checkpoints: string[];
    tile_paths: string[];
    proofs: string[];
    bundles: { width: number; bundle: string }[];
  };
}

export interface FairnessVectors {
  tickets: { origin: string; secret: string; ticket: string; pass: string }[];
  entries: string[];
  not_entries: string[];
  alphas: { room_hash: string; window: number; lots: number[]; size: number; root: string; alpha: string }[];
  seeds: { alpha: string; beta: string; round: number; signature: string; seed: string }[];
  shuffles: { seed: string; lane: string; lots: number; order?: number[]; sha256: string }[];
  deals: { seed: string; lane: string; lots: number[]; filled: number[]; line: [slot: number, seq: number][] }[];
  schedules: {
    rules: { from: number; length: number }[];
    closes: number;
    at: { time: number; window: { index: number; from: number; to: number } | null }[];
  }[];
  room: RoomVector;
  witnessed_room: RoomVector;
  lanes_room: RoomVector;
  seats_room: RoomVector;
  door_room: RoomVector;
  turns_room: RoomVector;
  slots_room: RoomVector;
}

export interface RoomVector {
  vrf_private_key: string;
  room_hash: string;
  entries: string[];
  draws: { window: number; alpha: string; beta: string; seed: string; orders: Record<string, number[]> }[];
  lines: Record<string, string[]>; // tickets by place
  root: string;
  violations: { after: number; entry: string; rule: string }[];
}

export interface DrandVectors {
  chains: {
    chain_hash: string;
    public_key: string;
    seed: string;
    beacon_id: string;
    genesis: number;
    period_seconds: number;
    rounds: { round: number; signature: string }[];
  }[];
}

export interface CosignatureVectors {
  vectors: { checkpoint: string; log: string; witnesses: Record<string, number> }[];
}

export interface VrfVectors {
  vectors: {
    suite: string;
    example: number;
    SK: string;
    PK: string;
    alpha: string;
    H: string;
    k: string;
    pi: string;
    beta: string;
  }[];
}

export interface TicketVectors {
  verdicts: Record<string, Record<string, string>>;
  files: {
    name: string;
    file: string;
    lines: { id: string; status: string; reason: string; facts?: Record<string, string> }[];
  }[];
  refused: { name: string; find: string; put: string }[];
}

export interface CredentialVectors {
  messages: { subject: CredentialSubject; method: string; nullifier: string; message: string }[];
  methods: { about: string; method: string; verdict: string }[];
  credentials: { about: string; method: string; subject: CredentialSubject; credential: string; verdict: string }[];
}

interface CredentialSubject {
  room: string;
  lane: string;
  ticket: string;
  round: string;
}

export interface BlindVectors {
  vectors: { variant: string; n: string; message: string; signature: string; accepted: boolean }[];
}

export const audit = read<AuditVectors>("audit/testdata/vectors.json");
export const fairness = read<FairnessVectors>("fairness/testdata/vectors.json");
export const vrf = read<VrfVectors>("vrf/testdata/rfc9381-p256.json");
export const credentials = read<CredentialVectors>("fairness/credential/testdata/vectors.json");
/** Examples of the RFC's four variants. */
export const rfc9474 = read<BlindVectors>("fairness/credential/testdata/rfc9474.json");
/** Rounds of public beacons. */
export const drand = read<DrandVectors>("fairness/beacon/testdata/drand-rounds.json");
/** Cosignatures of public witnesses. */
export const cosignatures = read<CosignatureVectors>("audit/testdata/cosignatures.json");
/** Saved proofs. */
export const ticketFiles = read<TicketVectors>("verifier/ticket/testdata/vectors.json");

/** A room's times, and the sentences about them. */
export interface OutlineVector {
  about: string;
  starts: number;
  closes: number | null;
  rules: { from: number; length: number }[];
  sentences: string[];
}

/** Sentences about windows, from the organizer's pages. */
export const outlines = read<OutlineVector[]>("web/console/rooms/testdata/outlines.json");
