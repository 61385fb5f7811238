// Responses to visitors who are not admitted.
import { decodeQuery, hasBadEscape, utf8 } from "./bytes.ts";
import { cut } from "./target.ts";

export const passParameter = "proofline_pass";
export const queueHeader = "Proofline-Queue";

/** splitQuery removes all passes from a query and returns the first. The other parameters stay as they are. */
export function splitQuery(query: string): { token: string | undefined; rest: string } {
  let token: string | undefined;
  const kept = query.split("&").filter((part) => {
    const [name, value] = cut(part, "=");
    if (hasBadEscape(name) || decodeQuery(name) !== passParameter) return true;
    token ??= hasBadEscape(value) ? "" : decodeQuery(value);
    return false;
  });
  return { token, rest: token === undefined ? query : kept.join("&") };
}

/**
 * isNavigation reports whether a browser loads a page, which can be redirected.
 * Scripts that fetch HTML send X-Requested-With: XMLHttpRequest; apps that show a
 * page send their own name there.
 */
export function isNavigation(r: Request): boolean {
  if (r.headers.has("upgrade") || !["GET", "HEAD", "POST"].includes(r.method)) return false;
  const mode = r.headers.get("sec-fetch-mode");
  if (mode) return mode === "navigate";
  const isScript = r.headers.get("x-requested-with")?.toLowerCase() === "xmlhttprequest";
  return r.method !== "POST" && !isScript && (r.headers.get("accept") ?? "").includes("text/html");
}

/** opensPage reports whether a request loads a page without a body. */
export function opensPage(r: Request): boolean {
  return (r.method === "GET" || r.method === "HEAD") && isNavigation(r);
}

/** agentOf returns the User-Agent as bytes. */
export function agentOf(r: Request): string {
  const value = r.headers.get("User-Agent") ?? "";
  return /[^\0-\xff]/.test(value) ? utf8(value) : value;
}

/** encodeQuery encodes part of a query as HTML forms do. */
export function encodeQuery(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

/** own returns a response of the connector, which must not be cached. */
export function own(r: Request, status: number, headers: Record<string, string>, body: string | null = null): Response {
  const common = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer" };
  return new Response(r.method === "HEAD" ? null : body, { status, headers: { ...common, ...headers } });
}

/** json returns a response for scripts. */
export function json(
  r: Request,
  status: number,
  body: Record<string, string>,
  headers: Record<string, string> = {},
): Response {
  return own(r, status, { ...headers, "Content-Type": "application/json" }, JSON.stringify(body) + "\n");
}

/** ownPage sends the site owner's page. */
export function ownPage(r: Request, page: string): Response {
  return own(r, 503, { "Retry-After": "30", "Content-Type": "text/html; charset=utf-8" }, page);
}
