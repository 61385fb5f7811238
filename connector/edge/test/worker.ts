// The connector in workerd with a clock that tests set: X-Test-Ahead is its lead in
// milliseconds from now on. /counts responds with the counts.
import { Connector, type Env, optionsOf, siteAt } from "../src/main.ts";

let ahead = 0;
let connector: Connector | undefined;

export default {
  async fetch(request: Request, env: Env, ctx: { waitUntil(promise: Promise<unknown>): void }): Promise<Response> {
    ahead = Number(request.headers.get("X-Test-Ahead") ?? ahead);
    connector ??= new Connector({
      ...optionsOf(env),
      site: siteAt(env.PROOFLINE_ORIGIN ?? ""),
      now: () => Date.now() + ahead,
      probe: 3_600_000,
    });
    if (new URL(request.url).pathname === "/counts") return Response.json(connector.stats());
    const client = request.headers.get("CF-Connecting-IP") ?? "";
    return connector.fetch(request, { client, waitUntil: (promise) => ctx.waitUntil(promise) });
  },
};
