import { isBeaconKey } from "./beacon.ts";
import { type Beacon, type LaneRule, maxLanes, type Room } from "./entry.ts";
import { methodAllowed } from "./method.ts";
import { never, rulesAllowed } from "./schedule.ts";

const second = 1000;
const hour = 3600 * second;
const day = 24 * hour;
const maxWitnesses = 16;
const maxMethods = 16;

/** Names the first field of a policy that the rules do not allow; undefined: the policy is valid. */
export function policyProblem(room: Room): string | undefined {
  const allowed: [field: string, ok: boolean][] = [
    ["origin", room.origin.length <= 255 && !room.origin.includes("+")],
    ["log", room.logKey.length <= 1024 && room.logKey.startsWith(`${room.origin}+`)],
    ["vrf", room.vrfKey[0] === 2 || room.vrfKey[0] === 3],
    ["beacon", room.beacon === undefined || beaconAllowed(room.beacon)],
    ["witnesses", witnessesAllowed(room)],
    ["method", methodsAllowed(room)],
    ["lane", lanesAllowed(room.lanes) && needsAllowed(room)],
    ["party", room.party !== 1 && room.party <= 20],
    ["opens", room.created <= room.opens],
    ["starts", room.starts >= room.opens],
    ["closes", room.closes > room.opens && room.closes <= never],
    ["window", room.windows[0]?.from === room.opens && rulesAllowed(room.windows, room.closes)],
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

/** The needs of a lane are methods, each once, in their order. */
function needsAllowed({ methods, lanes }: Room): boolean {
  const names = methods.map(({ name }) => name);
  return lanes.every(({ needs }) => {
    const ordered = names.filter((name) => needs.includes(name));
    return ordered.join() === needs.join();
  });
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
