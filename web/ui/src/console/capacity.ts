// Calculates the visitors per minute that a shop can serve. The server has the same calculation
// (web/console/rooms/capacity.go).
import { readLength, readNumber, writeLength, writeNumber } from "./lengths.ts";

const mostPerMinute = 10_000_000;
const mostCount = 2 ** 32 - 1;

/** The typed fields of the calculator. */
export interface Capacity {
  capacity: string; // visitors at once
  stay: string; // how long each stays
  people: string; // visitors in all
  noShow: string; // percentage of called visitors who do not come
}

export interface Flow {
  perMinute: number;
  capacity: number;
  words: string;
}

/** Calculates the outflow; undefined if the form is incomplete. */
export function flowOf(form: Capacity): Flow | undefined {
  const capacity = count(form.capacity);
  const stay = readLength(form.stay);
  if (!capacity || !stay) return undefined;
  const perMinute = Math.min(Math.max(Math.floor(capacity / (stay / 60_000)), 1), mostPerMinute);
  let words = `Let in ${writeNumber(perMinute)} per minute, with at most ${writeNumber(capacity)} at once.`;
  const people = count(form.people);
  if (people) {
    const minutes = Math.ceil(people / perMinute);
    const typed = form.noShow.replace(/%$/, "").trim();
    const share = typed === "" ? 0 : Number(typed);
    const away = share >= 0 && share <= 95 ? share : 0;
    const called = Math.ceil(people / (1 - away / 100));
    words += ` Everyone is through after about ${writeLength(minutes * 60_000)}, and about ${writeNumber(called)} have to be called for that.`;
  }
  return { perMinute, capacity, words };
}

function count(text: string): number | undefined {
  const n = readNumber(text.trim());
  return n !== undefined && n <= mostCount ? n : undefined;
}
