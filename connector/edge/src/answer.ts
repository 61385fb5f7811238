// What visitors are answered who do not get through.
import { decodeQuery, hasBadEscape, utf8 } from "./bytes.ts";
import { cut } from "./target.ts";

export const passParameter = "proofline_pass";
export const queueHeader = "Proofline-Queue";

/** splitQuery takes the first pass out of a query, and all others. The rest stays as it is, in its order. */
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
 * isNavigation tells whether a browser opens a page, which can be led away.
 * Scripts that want a page say so in X-Requested-With, where apps have their
 * names as they open one.
 */
export function isNavigation(r: Request): boolean {
  if (r.headers.has("upgrade") || !["GET", "HEAD", "POST"].includes(r.method)) return false;
  const mode = r.headers.get("sec-fetch-mode");
  if (mode) return mode === "navigate";
  const isScript = r.headers.get("x-requested-with")?.toLowerCase() === "xmlhttprequest";
  return r.method !== "POST" && !isScript && (r.headers.get("accept") ?? "").includes("text/html");
}

/** opensPage reports whether a request opens a page, and can be sent by another. */
export function opensPage(r: Request): boolean {
  return (r.method === "GET" || r.method === "HEAD") && isNavigation(r);
}

/** agentOf returns the User-Agent as bytes. */
export function agentOf(r: Request): string {
  const value = r.headers.get("User-Agent") ?? "";
  return /[^\0-\xff]/.test(value) ? utf8(value) : value;
}

/** escape encodes a part of a query as forms do. */
export function escape(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`).replaceAll("%20", "+");
}

/** own returns an answer of ours, which nobody keeps. */
export function own(r: Request, status: number, headers: Record<string, string>, body: string | null = null): Response {
  const common = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer" };
  return new Response(r.method === "HEAD" ? null : body, { status, headers: { ...common, ...headers } });
}

/** json returns an answer for scripts. */
export function json(r: Request, status: number, body: Record<string, string>, headers: Record<string, string> = {}): Response {
  return own(r, status, { ...headers, "Content-Type": "application/json" }, JSON.stringify(body) + "\n");
}

/** ownPage shows the page of the site's owner. */
export function ownPage(r: Request, page: string): Response {
  return own(r, 503, { "Retry-After": "30", "Content-Type": "text/html; charset=utf-8" }, page);
}
