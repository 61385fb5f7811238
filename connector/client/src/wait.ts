// Sends a page to its waiting room when something that it fetches has to wait: see
// README.md.
import type { Options, Queue } from "../wait.mjs";
import { cancel, forget, renew } from "./proof.ts";
import { wordsFor } from "./words.ts";

/** Memory is what a tab remembers across page loads: the page that was left, or when the visitor came back. */
interface Memory {
  page?: string;
  hash?: string;
  back?: number;
}

const memoryName = "proofline-wait"; // key in sessionStorage
const watched = Symbol.for(memoryName); // set on the window by watch
const soon = 600_000; // milliseconds after a return in which the dialog asks first
const slow = 30_000; // milliseconds after which a navigation that did not happen is forgotten

const renewAgain = 45_000; // milliseconds between proofs of the browser's keys

let isAsking = false;
let isDressed = false; // the page has the dialog's styles
let isTaken = false; // the visitor is on the way to a room
let isQuiet = false; // the visitor declined, and has not done anything since

/** watch watches the responses to fetch and XMLHttpRequest from now on. Further calls have no effect. */
export function watch({ mode, hosts = [] }: Options = {}): void {
  if (Object.hasOwn(window, watched)) return;
  Object.defineProperty(window, watched, {});
  arrive();
  keepProving();
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    isTaken = false; // the back button restored the page
    arrive();
  });

  const look = (from: string, status: number, header: (name: string) => string | null): void => {
    const { origin, host } = new URL(from, location.href);
    const isHere = origin === location.origin;
    if (status !== 403 || isTaken || !(isHere || hosts.includes(host))) return;
    const room = header("Proofline-Queue");
    if (!room) return;
    const back = (isHere && header("Proofline-Return")) || "";
    const join =
      isHere && back !== "enter"
        ? joinURL(room, { to: page(), to_sig: back })
        : joinURL(`${origin}/.proofline/enter`, { room, to: page() });
    if (
      !join ||
      !dispatchEvent(new CustomEvent<Queue>("proofline:queue", { cancelable: true, detail: { room, join } })) ||
      window !== top
    )
      return;
    if (mode === "dialog" || isSoon()) ask(join);
    else go(join);
  };

  window.fetch = new Proxy(fetch, {
    apply(send, self, args) {
      const answer = Reflect.apply(send, self, args) as Promise<Response>;
      answer.then(
        (r) => look(r.url, r.status, (name) => r.headers.get(name)),
        () => {}, // the page handles errors
      );
      return answer;
    },
  });
  const { prototype } = XMLHttpRequest;
  prototype.send = new Proxy(prototype.send, {
    apply(send, self: XMLHttpRequest, args) {
      self.addEventListener(
        "loadend",
        () => look(self.responseURL, self.status, (name) => self.getResponseHeader(name)),
        { once: true },
      );
      return Reflect.apply(send, self, args);
    },
  });
}

/**
 * leave ends the visitor's sessions at this host, so that the room calls the next visitor.
 * False: the connector did not respond, or refused.
 */
export async function leave(): Promise<boolean> {
  cancel();
  const answer = await fetch("/.proofline/release", { method: "POST", keepalive: true }).catch(() => undefined);
  if (answer?.status !== 204) return false;
  await forget().catch(() => undefined); // without the browser's store there are no keys
  return true;
}

/** page returns the address to return to, without its fragment, which rooms do not accept. */
const page = (): string => location.href.replace(/#.*/, "");

/** joinURL returns the URL of the room, or of the connector that redirects there; undefined: not a room's URL. */
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
  dialog.append(
    text,
    button(yes, () => go(join)),
    " ",
    button(no, () => dialog.close()),
  );
  dialog.onclose = () => {
    dialog.remove();
    isAsking = false;
    isQuiet = true;
    for (const kind of ["click", "keydown"])
      addEventListener(kind, () => (isQuiet = false), { once: true, capture: true });
  };
  (document.body ?? document.documentElement).append(dialog);
  dialog.showModal();
}

// looks are the dialog's styles. They have no specificity: any rule of the site overrides them, also rules for p and button.
const looks = `
:where(.proofline-queue) { box-sizing: border-box; max-width: min(24em, 100% - 2em); padding: 1.25em; border: 1px solid; border-radius: .75em; font: 1rem/1.5 system-ui, sans-serif }
:where(.proofline-queue p) { margin: 0 0 1em }
:where(.proofline-queue button) { min-height: 2.75em; margin: 0 0 .25em; padding: .5em 1em; font: inherit }`;

/** dress adds the styles to the page, once, in a way that every content security policy allows. */
function dress(): void {
  if (isDressed || !("adoptedStyleSheets" in document)) return;
  isDressed = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(looks);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  what: Partial<HTMLElementTagNameMap[K]>,
): HTMLElementTagNameMap[K] {
  return Object.assign(document.createElement(name), what);
}

const button = (textContent: string, onclick: () => void): HTMLElement =>
  make("button", { type: "button", textContent, onclick });

/** keepProving renews proofs while the page is visible, so that connectors need not ask for one. */
function keepProving(): void {
  const prove = (): void => {
    if (document.visibilityState === "visible") renew().catch(() => undefined); // some browsers store no keys
  };
  prove();
  setInterval(prove, renewAgain);
  for (const kind of ["visibilitychange", "pageshow", "submit"]) addEventListener(kind, prove, { capture: true });
}

/** arrive remembers that the visitor is back, and restores the fragment of the address. */
function arrive(): void {
  const left = recall();
  if (!left?.page) return;
  if (left.page === page() && left.hash && !location.hash) history.replaceState(history.state, "", left.hash);
  keep({ back: Date.now() });
}

/** isSoon reports whether the visitor came back recently, or that is unknown. */
function isSoon(): boolean {
  const memory = recall();
  return !memory || Date.now() - (memory.back ?? 0) < soon;
}

/** recall returns what the tab remembers; undefined: it has no storage. */
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
    // no storage: the visitor was asked first
  }
}
