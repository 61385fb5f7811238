import { isBeaconKey } from "./beacon.ts";
import { type Beacon, type LaneRule, maxLanes, maxSlots, type Room } from "./entry.ts";
import { methodAllowed } from "./method.ts";
import { never, rulesAllowed, slotsIn } from "./schedule.ts";

const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;
const maxWitnesses = 16;
const maxMethods = 16;
const maxMore = 3; // methods that give a lot

/** Names the first field of a policy that the rules do not allow; undefined: the policy is valid. */
export function policyProblem(room: Room): string | undefined {
  const allowed: [field: string, ok: boolean][] = [
    ["origin", room.origin.length <= 255 && !room.origin.includes("+")],
    ["log", room.logKey.length <= 1024 && room.logKey.startsWith(`${room.origin}+`)],
    ["vrf", room.vrfKey[0] === 2 || room.vrfKey[0] === 3],
    ["beacon", room.beacon === undefined || beaconAllowed(room.beacon)],
    ["witnesses", witnessesAllowed(room)],
    ["method", methodsAllowed(room)],
    ["lane", lanesAllowed(room.lanes) && room.lanes.every(({ needs }) => areMethods(room, needs))],
    ["lots", lotsAllowed(room)],
    ["party", room.party !== 1 && room.party <= 20],
    ["opens", room.created <= room.opens],
    ["starts", room.starts >= room.opens],
    ["closes", room.closes > room.opens && room.closes <= never],
    ["window", room.windows[0]?.from === room.opens && rulesAllowed(room.windows, room.closes)],
    ["slots", room.slots === 0 || slotsAllowed(room)],
    ["notice", room.notice >= 10 * second && room.notice <= day],
    ["outflow", room.perMinute >= 1 && room.perMinute <= 10_000_000],
    ["claim", room.claim >= second && room.claim <= day],
    ["extend", room.extend === 0 || (room.extend >= second && room.extend <= day)],
    ["grace", room.grace >= second && room.grace <= day],
    ["session", room.session >= second && room.session <= 7 * day],
  ];
  return allowed.find(([, ok]) => !ok)?.[0];
}

function methodsAllowed({ methods, beacon }: Room): boolean {
  const names = methods.map(({ name }) => name);
  const differ = new Set(names).size === names.length && !names.includes("-"); // which stands for no needs
  const fits = methods.every((method) => methodAllowed(method) && (method.kind !== "work" || beacon !== undefined));
  return methods.length <= maxMethods && differ && fits;
}

/** Reports whether names are those of methods, each once, in their order. */
function areMethods({ methods }: Room, names: readonly string[]): boolean {
  const ordered = methods.map(({ name }) => name).filter((name) => names.includes(name));
  return ordered.join() === names.join();
}

function lotsAllowed(room: Room): boolean {
  const isWork = room.methods.some(({ name, kind }) => kind === "work" && room.lots.includes(name));
  return room.lots.length <= maxMore && areMethods(room, room.lots) && !isWork;
}

/** The slots of a policy whose windows are allowed. */
function slotsAllowed(room: Room): boolean {
  if (room.windows[0]?.from !== room.opens || !rulesAllowed(room.windows, room.closes)) return false;
  const slots = slotsIn(room, 0n);
  return slots >= 2 && slots <= maxSlots;
}

function lanesAllowed(lanes: readonly LaneRule[]): boolean {
  const differ = new Set(lanes.map(({ name }) => name)).size === lanes.length;
  return (
    lanes.length >= 1 && lanes.length <= maxLanes && differ && lanes.every(({ weight }) => weight >= 1 && weight <= 100)
  );
}

function beaconAllowed({ id, key, genesis, period, margin }: Beacon): boolean {
  const inRange =
    genesis <= 2n ** 42n && period >= 1 && period <= (31 * day) / second && margin >= 5 * second && margin <= hour;
  return id.length <= 64 && inRange && isBeaconKey(key);
}

/** How many witnesses are more than half of all. */
export function majority(witnesses: readonly string[]): number {
  return Math.floor(witnesses.length / 2) + 1;
}

/** Witnesses with the same key are the same, whatever their names: the key follows the second plus. */
function witnessesAllowed({ beacon, witnesses, quorum }: Room): boolean {
  if (witnesses.length === 0) return quorum === 0;
  const keys = witnesses.map((vkey) => /^[^+]*\+[^+]*\+(.*)$/.exec(vkey)?.[1]);
  const differ = keys.every((key, i) => key !== undefined && keys.indexOf(key) === i);
  const fits = witnesses.length <= maxWitnesses && witnesses.every((vkey) => vkey.length <= 1024);
  return beacon !== undefined && differ && fits && quorum >= majority(witnesses) && quorum <= witnesses.length;
}
