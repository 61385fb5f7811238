/** A response with an error status. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfter: number; // milliseconds; 0: not stated

  constructor(answer: Response) {
    super(`status ${answer.status}`);
    this.status = answer.status;
    const seconds = Number(answer.headers.get("Retry-After") ?? 0);
    this.retryAfter = seconds > 0 ? seconds * 1000 : 0;
  }

  /** Reports whether the same request may succeed a little later. */
  get isTemporary(): boolean {
    return this.status === 429 || this.status >= 500 || (this.status === 409 && this.retryAfter > 0);
  }
}

/** How long to wait for a complete response, in milliseconds. */
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
 * Fetches a public document, without cookies. The browser's cache revalidates what
 * it has: otherwise it would respond with the document of the previous poll.
 */
export function getPublic(url: string): Promise<string> {
  return ask(url, { credentials: "omit", cache: "no-cache" });
}

/** Fetches the page's <main> again. */
export async function getMain(url: string, credentials: RequestCredentials): Promise<HTMLElement> {
  const answer = await ask(url, { credentials, headers: { Accept: "text/html" } });
  const main = new DOMParser().parseFromString(answer, "text/html").querySelector<HTMLElement>("main[data-state]");
  if (!main) throw new Error("the response has no <main>");
  return main;
}

/** Sends a form, as a page does. */
export async function postForm(url: string, fields: Record<string, string>): Promise<void> {
  await ask(url, {
    method: "POST",
    credentials: "same-origin",
    headers: { Accept: "application/json" },
    body: new URLSearchParams(fields),
  });
}

/** Sends an object and returns the one in the response. */
export async function post(url: string, body: object): Promise<Record<string, unknown>> {
  const answer = await ask(url, {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  });
  return JSON.parse(answer) as Record<string, unknown>;
}
