import type { Room } from "./entry.ts";
import { never, rulesAllowed } from "./schedule.ts";

/** The one lane of this version of the rules. */
export const generalLane = "general";

const second = 1000;
const day = 24 * 3600 * second;

/** Names the first field of a policy that the rules do not allow; undefined if all is well. */
export function policyProblem(room: Room): string | undefined {
  const allowed: [field: string, ok: boolean][] = [
    ["origin", room.origin.length <= 255 && !room.origin.includes("+")],
    ["log", room.logKey.length <= 1024 && room.logKey.startsWith(`${room.origin}+`)],
    ["vrf", room.vrfKey[0] === 2 || room.vrfKey[0] === 3],
    ["beacon", room.beacon === undefined],
    ["lane", room.lanes.length === 1 && room.lanes[0] === generalLane],
    ["opens", room.created <= room.opens],
    ["starts", room.starts >= room.opens],
    ["closes", room.closes > room.opens && room.closes <= never],
    ["window", room.windows[0]?.from === room.opens && rulesAllowed(room.windows, room.closes)],
    ["outflow", room.perMinute >= 1 && room.perMinute <= 10_000_000],
    ["claim", room.claim >= second && room.claim <= day],
    ["session", room.session >= second && room.session <= 7 * day],
  ];
  return allowed.find(([, ok]) => !ok)?.[0];
}
