// The connector's own pages, the same in all connectors.
import shared from "../../pages.json";
import { isNavigation, json, own } from "./answer.ts";
import { base64url, lower, toBytes } from "./bytes.ts";
import { cut } from "./target.ts";

const { style, html, texts } = shared;

/** Why is the error that scripts get instead. */
type Why = keyof typeof texts; // and "bind"

type Text = { lang: string } & Record<string, string>;

/** pageOf returns a page in one language, without the lines that lack a text. */
function pageOf(text: Record<string, string>): string {
  const isWhole = (line: string) => [...line.matchAll(placeholder)].every(([, name = ""]) => name in text);
  return html
    .filter(isWhole)
    .map((line) => line.replace(placeholder, (_, name: string) => text[name] ?? ""))
    .join("\n");
}

const placeholder = /\{(\w+)\}/g;

/** textFor returns the texts in the language preferred by the visitor; among equal ones, in the first. */
function textFor(why: Why, acceptLanguage: string): Text {
  const known: Text[] = texts[why];
  let [best, liked]: [Text | undefined, number] = [known[0], 0];
  for (const part of acceptLanguage.split(",")) {
    const [tag, q] = cut(lower(part), ";");
    const weight = /^q=(\d+\.?\d*|\.\d+)$/.exec(q.trim());
    const likes = weight ? Number(weight[1]) : 1;
    const found = known.find(({ lang }) => lang === cut(tag.trim(), "-")[0]);
    if (found && likes > liked && likes <= 1) [best, liked] = [found, likes];
  }
  if (!best) throw new Error("pages.json lacks texts");
  return best;
}

/** refuse answers with the error's page, or to scripts with JSON. */
export async function refuse(
  r: Request,
  status: number,
  said: { error: Why } & Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Response> {
  if (!isNavigation(r)) return json(r, status, said, headers);
  const text = textFor(said.error, r.headers.get("Accept-Language") ?? "");
  const policy = await pagePolicy();
  const wait = headers["Retry-After"];
  const page = pageOf({ ...text, style, ...(wait === undefined ? {} : { wait }) });
  return own(
    r,
    status,
    {
      ...headers,
      "Content-Type": "text/html; charset=utf-8",
      "Content-Language": text.lang,
      "Content-Security-Policy": policy,
    },
    page,
  );
}

async function pagePolicy(): Promise<string> {
  const sum = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(style))))
    .replace(/-/g, "+")
    .replace(/_/g, "/");
  return `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-${sum}='`;
}

/** VisitToProve describes a session to the script of the page. */
export interface VisitToProve {
  name: string; // of the room
  subject: string;
  room: string; // URL
  bound: boolean; // tied to a key
}

/**
 * bindPage is where a browser proves possession of keys. Without scripts it continues, unless a session needs a
 * proof.
 */
export async function bindPage(r: Request, to: string, now: number, visits: VisitToProve[]): Promise<Response> {
  const text = textFor("bind", r.headers.get("Accept-Language") ?? "");
  const policy = `${await pagePolicy()}; script-src 'self'; connect-src 'self'`;
  const go = visits.some(({ bound }) => bound)
    ? ""
    : `<noscript><meta http-equiv="refresh" content="0;url=${escapeHTML(to)}"></noscript>`;
  const page = pageOf({ ...text, style, go, data: escapeHTML(JSON.stringify({ to, now, visits })) });
  return own(
    r,
    200,
    { "Content-Type": "text/html; charset=utf-8", "Content-Language": text.lang, "Content-Security-Policy": policy },
    page,
  );
}

function escapeHTML(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** retryLater sends the retry page. The delay is random, to spread the retries. */
export function retryLater(r: Request): Promise<Response> {
  return refuse(r, 503, { error: "unavailable" }, { "Retry-After": String(10 + Math.floor(Math.random() * 10)) });
}
