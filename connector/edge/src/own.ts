// Responses that do not depend on the rules' decisions: to paths that begin, as
// written, with /.proofline/.

import bindScript from "../../client/bind.js" with { type: "text" };
import script from "../../client/wait.js" with { type: "text" };
import type { Site } from "./rules.ts";
import { isWeb, urlOf } from "./target.ts";

export const ownPath = "/.proofline/";
export const scriptPath = `${ownPath}wait.js`; // see connector/client/README.md

// Gives a visitor a session at this host for a page at another host of the site.
export const enterPath = `${ownPath}enter`;
export const releasePath = `${ownPath}release`; // ends the visitor's sessions

export const bindPath = `${ownPath}bind`; // where a browser ties its session to a key, and proves possession of it
const bindScriptPath = `${ownPath}bind.js`;

const scripts: Record<string, string> = { [scriptPath]: script, [bindScriptPath]: bindScript };

const methods: Record<string, string[]> = {
  [scriptPath]: ["GET", "HEAD"],
  [bindScriptPath]: ["GET", "HEAD"],
  [bindPath]: ["GET", "HEAD", "POST"],
  [enterPath]: ["GET", "HEAD"],
  [releasePath]: ["POST"],
};

/** headersOf returns the headers of a script, with the hash from its build as ETag. */
const headersOf = (text: string) => ({
  "Content-Type": "text/javascript; charset=utf-8",
  "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
  "X-Content-Type-Options": "nosniff",
  ETag: `"${text.trimEnd().slice(-16)}"`,
});

/**
 * serveOwn answers requests to the connector; undefined: for the site, or the rules are needed. Unknown paths get
 * 404.
 */
export function serveOwn(request: Request): Response | undefined {
  const { pathname, origin } = new URL(request.url);
  if (!pathname.startsWith(ownPath)) return undefined;
  const allowed = methods[pathname];
  if (!allowed) return text(404, "not found\n", { "Cache-Control": "no-store" });
  if (!allowed.includes(request.method)) return text(405, "method not allowed\n", { Allow: allowed.join(", ") });
  if (request.method === "POST" && !isOwnPage(request, origin))
    return text(403, "a page of this site may ask for this, and no other\n", { "Cache-Control": "no-store" });
  const body = scripts[pathname];
  if (body === undefined) return undefined; // needs the rules
  const headers = headersOf(body);
  const known = (request.headers.get("If-None-Match") ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  if (known.includes(headers.ETag)) return new Response(null, { status: 304, headers });
  return new Response(request.method === "HEAD" ? null : body, { headers });
}

function text(status: number, body: string, more: Record<string, string>): Response {
  return new Response(body, {
    status,
    headers: { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", ...more },
  });
}

/** isOwnPage reports whether a request was made by a page of this very host, or not by a page. */
function isOwnPage(request: Request, own: string): boolean {
  const [from, origin] = [request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")];
  return (
    (from === null || from === "same-origin" || from === "none") && (origin === null || urlOf(origin)?.origin === own)
  );
}

/** sitePage parses the address of a page of the site: same scheme, on a host that the rules name without a wildcard. */
export function sitePage(site: Site, here: URL, address: string): URL | undefined {
  const url = urlOf(address);
  if (!url || !isWeb(url) || url.protocol !== here.protocol || url.username || url.password) return undefined;
  return site.hosts.includes(url.hostname) && !url.hostname.includes("*") ? url : undefined;
}

/** allowSiteOrigin returns the headers that let scripts on the site's other hosts read where to wait. */
export function allowSiteOrigin(site: Site, here: URL, origin: string | null): Record<string, string> {
  if (!origin || !sitePage(site, here, origin)) return {};
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Expose-Headers": "Proofline-Queue",
    Vary: "Origin",
  };
}
