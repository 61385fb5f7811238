// Leads a page to its waiting room when what it fetches has to wait there: see
// README.md.
import type { Options, Queue } from "../wait.mjs";
import { renew } from "./proof.ts";
import { wordsFor } from "./words.ts";

/** Memory is what a tab knows when a page is loaded again: the page that was left, or when the visitor came back. */
interface Memory {
  page?: string;
  hash?: string;
  back?: number;
}

const memoryName = "proofline-wait"; // in the storage of the tab
const watched = Symbol.for(memoryName); // a member of the window when watch was called
const soon = 600_000; // milliseconds after a return in which nobody is led away unasked
const slow = 30_000; // milliseconds after which a way that was not taken is forgotten

const renewAgain = 45_000; // milliseconds between proofs that this browser has the keys of its visits

let isAsking = false;
let isDressed = false; // the page has the looks of the dialog
let isTaken = false; // the visitor is on the way to a room
let isQuiet = false; // the visitor does not want to, and has done nothing since

/** watch looks at what fetch and XMLHttpRequest get, from now on. Another call changes nothing. */
export function watch({ mode, hosts = [] }: Options = {}): void {
  if (Object.hasOwn(window, watched)) return;
  Object.defineProperty(window, watched, {});
  arrive();
  keepProving();
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    isTaken = false; // the back button shows the page as it was
    arrive();
  });

  const look = (from: string, status: number, header: (name: string) => string | null): void => {
    const { origin, host } = new URL(from, location.href);
    const isHere = origin === location.origin;
    if (status !== 403 || isTaken || !(isHere || hosts.includes(host))) return;
    const room = header("Proofline-Queue");
    if (!room) return;
    const back = (isHere && header("Proofline-Return")) || "";
    const join = isHere && back !== "enter" ? joinURL(room, { to: page(), to_sig: back }) : joinURL(`${origin}/.proofline/enter`, { room, to: page() });
    if (!join || !dispatchEvent(new CustomEvent<Queue>("proofline:queue", { cancelable: true, detail: { room, join } })) || window !== top) return;
    if (mode === "dialog" || isSoon()) ask(join);
    else go(join);
  };

  window.fetch = new Proxy(fetch, {
    apply(send, self, args) {
      const answer = Reflect.apply(send, self, args) as Promise<Response>;
      answer.then(
        (r) => look(r.url, r.status, (name) => r.headers.get(name)),
        () => {}, // is for the page
      );
      return answer;
    },
  });
  const { prototype } = XMLHttpRequest;
  prototype.send = new Proxy(prototype.send, {
    apply(send, self: XMLHttpRequest, args) {
      self.addEventListener("loadend", () => look(self.responseURL, self.status, (name) => self.getResponseHeader(name)), { once: true });
      return Reflect.apply(send, self, args) as void;
    },
  });
}

/**
 * leave ends the visit of somebody who is done: the sessions at this host end, and the room calls the next visitor.
 * False: the connector did not answer, or refused.
 */
export async function leave(): Promise<boolean> {
  const answer = await fetch("/.proofline/release", { method: "POST", keepalive: true }).catch(() => undefined);
  return answer?.status === 204;
}

/** page is the address that the visitor is to come back to. Rooms take none with a fragment. */
const page = (): string => location.href.replace(/#.*/, "");

/** joinURL returns where to join: at the room, or at the connector, which leads there; undefined: a room cannot be there. */
function joinURL(address: string, members: Record<string, string>): string | undefined {
  try {
    const url = new URL(address);
    for (const [name, value] of Object.entries(members)) if (value) url.searchParams.set(name, value);
    return /^https?:$/.test(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

function go(join: string): void {
  isTaken = true;
  setTimeout(() => (isTaken = false), slow);
  keep({ page: page(), hash: location.hash });
  location.assign(join);
}

function ask(join: string): void {
  if (isAsking || isQuiet) return;
  isAsking = true;
  const [lang, question, yes, no] = wordsFor(document.documentElement.lang || navigator.language);
  const dialog = make("dialog", { className: "proofline-queue", lang, dir: lang === "ar" ? "rtl" : "ltr" });
  const text = make("p", { id: "proofline-queue", textContent: question });
  dialog.setAttribute("aria-labelledby", text.id);
  dress();
  dialog.append(text, button(yes, () => go(join)), " ", button(no, () => dialog.close()));
  dialog.onclose = () => {
    dialog.remove();
    isAsking = false;
    isQuiet = true;
    for (const kind of ["click", "keydown"]) addEventListener(kind, () => (isQuiet = false), { once: true, capture: true });
  };
  (document.body ?? document.documentElement).append(dialog);
  dialog.showModal();
}

// looks are those of the dialog. Without specificity: whatever a site's style sheets say of it, of p and of button counts more.
const looks = `
:where(.proofline-queue) { box-sizing: border-box; max-width: min(24em, 100% - 2em); padding: 1.25em; border: 1px solid; border-radius: .75em; font: 1rem/1.5 system-ui, sans-serif }
:where(.proofline-queue p) { margin: 0 0 1em }
:where(.proofline-queue button) { min-height: 2.75em; margin: 0 0 .25em; padding: .5em 1em; font: inherit }`;

/** dress gives the page the looks, once, in a way that no content security policy forbids. */
function dress(): void {
  if (isDressed || !("adoptedStyleSheets" in document)) return;
  isDressed = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(looks);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

function make<K extends keyof HTMLElementTagNameMap>(name: K, what: Partial<HTMLElementTagNameMap[K]>): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(name), what);
}

const button = (textContent: string, onclick: () => void): HTMLElement => make("button", { type: "button", textContent, onclick });

/** keepProving has fresh proofs while the page is seen, so that connectors need not ask for one. */
function keepProving(): void {
  const prove = (): void => {
    if (document.visibilityState === "visible") renew().catch(() => undefined); // of browsers that keep no keys
  };
  prove();
  setInterval(prove, renewAgain);
  for (const kind of ["visibilitychange", "pageshow", "submit"]) addEventListener(kind, prove, { capture: true });
}

/** arrive keeps that the visitor is back, and gives the address its fragment again. */
function arrive(): void {
  const left = recall();
  if (!left?.page) return;
  if (left.page === page() && left.hash && !location.hash) history.replaceState(history.state, "", left.hash);
  keep({ back: Date.now() });
}

/** isSoon tells whether the visitor came back a moment ago, or nobody can know. */
function isSoon(): boolean {
  const memory = recall();
  return !memory || Date.now() - (memory.back ?? 0) < soon;
}

/** recall returns what the tab knows; undefined: it may keep nothing. */
function recall(): Memory | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(memoryName) ?? "{}") as Memory;
  } catch {
    return undefined;
  }
}

function keep(memory: Memory): void {
  try {
    sessionStorage.setItem(memoryName, JSON.stringify(memory));
  } catch {
    // nothing can be kept: the visitor was asked for that
  }
}
