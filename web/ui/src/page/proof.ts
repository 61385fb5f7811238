import type { Line, Status, Visitor } from "../check/index.ts";
import { getPublic } from "./http.ts";
import type { Memory } from "./memory.ts";

/** A request to the checker: a place in a log, or a saved proof and the room's key. */
export type Question =
  | { prefix: string; ticket: string; visitor: Visitor }
  | { file: Uint8Array; origin: string; vkey: string };

/** Its response: the lines and the proof to save, or why the log could not be read. */
export type Answer = { lines: Line[]; bundle: string | undefined; origin: string } | { failure: string };

/** Checks the place of a page in a worker, so that the page stays responsive. */
export async function check(data: DOMStringMap, memory: Memory): Promise<Exclude<Answer, { failure: string }>> {
  const { room = "", ticket = "", origin = "", vkey = "", checker = "", position } = data;
  const kept = memory.of(ticket);
  const receipt = kept.receipt ?? (await getPublic(`${room}/tickets/${ticket}/receipt`));
  const key = kept.vkey ?? vkey; // the first one seen
  memory.keep(ticket, { receipt, vkey: key });
  const shown = kept.position ?? (position === undefined ? undefined : Number(position));
  const visitor: Visitor = {
    origin,
    vkey: key,
    ticket,
    receipt: new TextEncoder().encode(receipt),
    ...(shown !== undefined && { shown: BigInt(shown) }),
  };
  const answer = await ask(checker, { prefix: `${room}/`, ticket, visitor });
  if ("failure" in answer) throw new Error(answer.failure);
  return answer;
}

/** Checks a saved proof in a worker; undefined: not a saved proof. Nothing is sent to a server. */
export async function checkFile(
  data: DOMStringMap,
  file: Uint8Array,
): Promise<Exclude<Answer, { failure: string }> | undefined> {
  const { origin = "", vkey = "", checker = "" } = data;
  const answer = await ask(checker, { file, origin, vkey });
  return "failure" in answer ? undefined : answer;
}

function ask(checker: string, question: Question): Promise<Answer> {
  const worker = new Worker(checker, { type: "module" });
  return new Promise<Answer>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Answer>) => resolve(data);
    worker.onerror = () => reject(new Error("the checker cannot be loaded"));
    worker.postMessage(question);
  }).finally(() => worker.terminate());
}

/** The colour of a whole check: that of its worst line. */
export function overall(lines: readonly Line[]): Status {
  const has = (status: Status) => lines.some((line) => line.status === status);
  for (const status of ["red", "amber", "neutral"] as const) if (has(status)) return status;
  return "green";
}

/** The sentence that sums up a check: that of its colour, or of level 1 for a draw without a public beacon. */
export function summary(lines: readonly Line[]): Status | "level1" {
  const status = overall(lines);
  const open = lines.filter((line) => line.status === "amber").map(({ reason }) => reason);
  return status === "amber" && open.every((reason) => reason === "no-beacon" || reason === "own-beacon")
    ? "level1"
    : status;
}

/** How long after its time a draw may appear in the record before the page says that it is late, in milliseconds. */
const lateAfter = 60_000;

/** Returns the lines, with those amber that are still to come but should not be. */
export function atTime(lines: readonly Line[], draws: number, now: number): Line[] {
  if (now < draws + lateAfter) return [...lines];
  return lines.map((line) =>
    line.reason === "pending" && line.status === "neutral" ? { ...line, status: "amber" } : line,
  );
}

/** Reports whether a later check may show more. */
export function isPending(lines: readonly Line[]): boolean {
  return (
    !lines.some(({ status }) => status === "red") &&
    lines.some(({ reason }) => reason === "pending" || reason === "behind")
  );
}

/** The name of the file that a proof is saved in: the room's, and enough of the ticket to tell two apart. */
export function proofName({ room = "", ticket = "" }: DOMStringMap): string {
  const slug = room.slice(room.lastIndexOf("/") + 1);
  return `proofline-${slug}-${ticket.slice(0, 8)}.json`;
}
