/** An answer that says no. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfter: number; // milliseconds, 0 for not said

  constructor(answer: Response) {
    super(`status ${answer.status}`);
    this.status = answer.status;
    const seconds = Number(answer.headers.get("Retry-After") ?? 0);
    this.retryAfter = seconds > 0 ? seconds * 1000 : 0;
  }

  /** Tells whether the same request may succeed a little later. */
  get isTemporary(): boolean {
    return this.status === 429 || this.status >= 500 || (this.status === 409 && this.retryAfter > 0);
  }
}

/** How long to wait for a whole answer, in milliseconds. */
const patience = 15_000;

async function ask(url: string, init: RequestInit): Promise<string> {
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), patience);
  try {
    const answer = await fetch(url, { ...init, signal: giveUp.signal });
    if (!answer.ok) throw new Refusal(answer);
    return await answer.text();
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Gets what everybody gets, without cookies. The browser's own cache asks
 * whether what it has is still true, or it would answer with what was true at
 * the poll before.
 */
export function getPublic(url: string): Promise<string> {
  return ask(url, { credentials: "omit", cache: "no-cache" });
}

/** Gets the page's own <main> anew. */
export async function getMain(url: string, credentials: RequestCredentials): Promise<HTMLElement> {
  const answer = await ask(url, { credentials, headers: { Accept: "text/html" } });
  const main = new DOMParser().parseFromString(answer, "text/html").querySelector<HTMLElement>("main[data-state]");
  if (!main) throw new Error("the answer has no <main>");
  return main;
}

/** Sends an object and returns the one that is answered. */
export async function post(url: string, body: object): Promise<Record<string, unknown>> {
  const answer = await ask(url, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  return JSON.parse(answer) as Record<string, unknown>;
}
