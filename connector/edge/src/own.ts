// What the connector answers itself, whatever the rules say: paths that begin,
// as they are written, with /.proofline/.
import script from "../../client/wait.js" with { type: "text" };

export const ownPath = "/.proofline/";
export const scriptPath = `${ownPath}wait.js`; // what connector/client/README.md is about

const tag = `"${script.trimEnd().slice(-16)}"`; // the sum that its build leaves

const headers = {
  "Content-Type": "text/javascript; charset=utf-8",
  "Cache-Control": "public, max-age=3600, stale-while-revalidate=86400",
  "X-Content-Type-Options": "nosniff",
  ETag: tag,
};

/** serveOwn answers what is for the connector itself; undefined: it is for the site. What it has not, nobody has. */
export function serveOwn(request: Request): Response | undefined {
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(ownPath)) return undefined;
  if (pathname !== scriptPath) return text(404, "not found\n", { "Cache-Control": "no-store" });
  if (request.method !== "GET" && request.method !== "HEAD") return text(405, "method not allowed\n", { Allow: "GET, HEAD" });
  const known = (request.headers.get("If-None-Match") ?? "").split(",").map((one) => one.trim().replace(/^W\//, ""));
  if (known.includes(tag)) return new Response(null, { status: 304, headers });
  return new Response(request.method === "HEAD" ? null : script, { headers });
}

function text(status: number, body: string, more: Record<string, string>): Response {
  return new Response(body, { status, headers: { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", ...more } });
}
