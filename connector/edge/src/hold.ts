// The page that visitors see while a room cannot be reached, as all connectors
// have it.
import shared from "../../hold.json";
import { isNavigation, json, own } from "./answer.ts";
import { base64url, lower, toBytes } from "./bytes.ts";
import { cut } from "./target.ts";

const { style, html, texts } = shared;

interface Text {
  lang: string;
  dir: string;
  title: string;
  lead: string;
  again: string;
}

/** pageOf returns the page in one language. */
function pageOf({ lang, dir, title, lead, again }: Text, wait: number): string {
  const values: Record<string, string> = { lang, dir, style, title, lead, again, wait: String(wait) };
  return html.join("\n").replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? "");
}

/** textFor returns the texts in the language that a visitor likes best, of those there are: of equally liked ones the first. */
function textFor(acceptLanguage: string): Text {
  let [best, liked]: [Text | undefined, number] = [texts[0], 0];
  for (const part of acceptLanguage.split(",")) {
    const [tag, q] = cut(lower(part), ";");
    const weight = /^q=(\d+\.?\d*|\.\d+)$/.exec(q.trim());
    const likes = weight ? Number(weight[1]) : 1;
    const found = texts.find(({ lang }) => lang === cut(tag.trim(), "-")[0]);
    if (found && likes > liked && likes <= 1) [best, liked] = [found, likes];
  }
  if (!best) throw new Error("hold.json has no texts");
  return best;
}

/** hold asks to come back, not everybody at once. */
export async function hold(r: Request): Promise<Response> {
  const wait = 10 + Math.floor(Math.random() * 10);
  const headers = { "Retry-After": String(wait) };
  if (!isNavigation(r)) return json(r, 503, { error: "unavailable" }, headers);
  const text = textFor(r.headers.get("Accept-Language") ?? "");
  const sum = base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", toBytes(style)))).replace(/-/g, "+").replace(/_/g, "/");
  const policy = `default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; style-src 'sha256-${sum}='`;
  return own(r, 503, { ...headers, "Content-Type": "text/html; charset=utf-8", "Content-Language": text.lang, "Content-Security-Policy": policy }, pageOf(text, wait));
}
