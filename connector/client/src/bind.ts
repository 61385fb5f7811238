// The script of /.proofline/bind: it ties a session to a key of this browser, or
// proves that the browser has the key, and continues to the page.
import { again, begin, type Visit } from "./proof.ts";

const memory = "proofline-bind"; // key in sessionStorage: where this page last sent the tab, and when
const soon = 5_000; // milliseconds in which a return for the same page is a loop

const { to, now, visits } = JSON.parse(document.currentScript?.dataset.visit ?? "{}") as {
  to: string;
  now: number;
  visits: Visit[];
};
const ahead = now - Date.now();

/** tie ties a session to a key, or proves the key. False: another browser has it. */
async function tie(visit: Visit): Promise<boolean> {
  if (visit.bound) return again(visit, ahead);
  await begin(visit, ahead);
  return true;
}

/** isBack reports whether the tab was sent to the page a moment ago, and is here again. */
function isBack(): boolean {
  const before = sessionStorage.getItem(memory) ?? "";
  const isSame = before.startsWith(`${to}\n`) && Date.now() - Number(before.slice(to.length + 1)) < soon;
  sessionStorage.setItem(memory, `${to}\n${Date.now()}`);
  return isSame;
}

/** elsewhere shows that another browser has the session, and the link to the room. */
function elsewhere(room: string): void {
  const text = document.getElementById("elsewhere");
  if (!text) return;
  for (const other of text.parentElement?.querySelectorAll("p") ?? []) other.hidden = other !== text;
  text.querySelector("a")?.setAttribute("href", room);
}

async function run(): Promise<void> {
  let isUnbound = false;
  for (const visit of visits) {
    isUnbound ||= !visit.bound;
    const isHere = await tie(visit).catch(() => !visit.bound); // without a key the session continues unchanged
    if (!isHere || (visit.bound && isBack())) return elsewhere(visit.room);
  }
  if (isUnbound) await fetch("/.proofline/bind", { method: "POST" }).catch(() => undefined);
  location.replace(to);
}

void run().catch(() => location.replace(to));
