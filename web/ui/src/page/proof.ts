import type { Line, Status, Visitor } from "../check/index.ts";
import { getPublic } from "./http.ts";
import type { Memory } from "./memory.ts";

/** What the checker is asked. */
export interface Question {
  prefix: string; // of the log
  visitor: Visitor;
}

/** What it answers: the lines and the proof to save, or that the log could not be read. */
export type Answer = { lines: Line[]; bundle: string | undefined } | { failure: string };

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
  const answer = await ask(checker, { prefix: `${room}/`, visitor });
  if ("failure" in answer) throw new Error(answer.failure);
  return answer;
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
  if (has("red")) return "red";
  return has("amber") ? "amber" : "green";
}

/** Tells whether more can be shown a little later. */
export function isPending(lines: readonly Line[]): boolean {
  return !lines.some(({ status }) => status === "red") && lines.some(({ reason }) => reason === "pending" || reason === "behind");
}

/** The name of the file that a proof is saved in: the room's, and enough of the ticket to tell two apart. */
export function proofName({ room = "", ticket = "" }: DOMStringMap): string {
  const slug = room.slice(room.lastIndexOf("/") + 1);
  return `proofline-${slug}-${ticket.slice(0, 8)}.json`;
}
