// The module's exports. The default export is for Cloudflare Workers; on other
// platforms programs create a Connector: see README.md.

import { toBytes, utf8 } from "./bytes.ts";
import { Connector, type Context, type Options } from "./connector.ts";
import { inCache } from "./keep.ts";
import { retryLater } from "./pages.ts";

export { cloudFront } from "./cloudfront.ts";
export { decide, InvalidError, parse } from "./rules.ts";
export { Connector, type Context, type Options, utf8 };

/** Env is the bindings of a Worker. */
export interface Env {
  PROOFLINE_KEY?: string; // its bytes are the key, as in the other connectors
  PROOFLINE_RULES?: string;
  PROOFLINE_RULES_URL?: string;
  PROOFLINE_SITE_KEY?: string; // verifier key of the rules at the URL
  PROOFLINE_TOKEN?: string; // with the scope connect
  PROOFLINE_SERVER?: string; // for reports; default: the server of the URL
  PROOFLINE_ORIGIN?: string; // the site's address; default: behind the route
  PROOFLINE_PAGE?: string;
}

/** optionsOf returns the options in the bindings. */
export function optionsOf(env: Env): Options {
  return {
    key: toBytes(utf8((env.PROOFLINE_KEY ?? "").trim())),
    rules: env.PROOFLINE_RULES,
    rulesURL: env.PROOFLINE_RULES_URL,
    siteKey: env.PROOFLINE_SITE_KEY?.trim(),
    token: env.PROOFLINE_TOKEN?.trim() || undefined,
    server: env.PROOFLINE_SERVER,
    page: env.PROOFLINE_PAGE,
    site: env.PROOFLINE_ORIGIN === undefined ? (request) => fetch(request) : siteAt(env.PROOFLINE_ORIGIN),
  };
}

/** siteAt sends requests to a site at another address, such as https://origin.example.com. */
export function siteAt(
  origin: string,
  send: (request: Request) => Promise<Response> = (request) => fetch(request),
): Options["site"] {
  const base = new URL(origin);
  if (base.pathname !== "/" || base.search || base.username)
    throw new Error("PROOFLINE_ORIGIN must be an origin such as https://origin.example.com, without a path");
  return async (request) => {
    const asked = new URL(request.url);
    const to = requestTo(base.origin + asked.pathname + asked.search, request);
    if (!to)
      return new Response("this method does not get through here\n", {
        status: 501,
        headers: { "Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store" },
      });
    to.headers.set("X-Forwarded-Host", asked.host);
    to.headers.set("X-Forwarded-Proto", asked.protocol.slice(0, -1));
    return send(new Request(to, { redirect: "manual" }));
  };
}

/** requestTo returns a request to another address; undefined: fetch cannot send it, such as TRACE. */
function requestTo(url: string, request: Request): Request | undefined {
  try {
    return new Request(url, request);
  } catch {
    return undefined;
  }
}

const names = [
  "PROOFLINE_KEY",
  "PROOFLINE_RULES",
  "PROOFLINE_RULES_URL",
  "PROOFLINE_SITE_KEY",
  "PROOFLINE_TOKEN",
  "PROOFLINE_SERVER",
  "PROOFLINE_ORIGIN",
  "PROOFLINE_PAGE",
] as const;
let made: { from: string; connector: Connector } | undefined; // one per isolate

/** connectorOf returns the isolate's connector, and creates a new one when the bindings change. */
function connectorOf(env: Env, { url }: Request): Connector {
  const from = JSON.stringify(names.map((name) => env[name]));
  const keep =
    env.PROOFLINE_RULES_URL === undefined ? {} : { keep: inCache(new URL(url).origin, env.PROOFLINE_RULES_URL) };
  if (made?.from !== from) made = { from, connector: new Connector({ ...optionsOf(env), ...keep }) };
  return made.connector;
}

export default {
  async fetch(request: Request, env: Env, ctx: { waitUntil(promise: Promise<unknown>): void }): Promise<Response> {
    let connector: Connector;
    try {
      connector = connectorOf(env, request);
    } catch (error) {
      console.error("proofline: no visitor gets in until this is fixed:", String(error));
      return retryLater(request);
    }
    const client = request.headers.get("CF-Connecting-IP") ?? "";
    return connector.fetch(request, { client, waitUntil: (promise) => ctx.waitUntil(promise) });
  },
};
