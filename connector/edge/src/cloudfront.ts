// The adapter for Amazon CloudFront: two Lambda@Edge functions, for requests on
// their way to the site and responses on their way back, in CloudFront's format.
import { begunHeader, type Connector } from "./connector.ts";

/** CloudFrontHeaders are headers by name in lower case. */
export type CloudFrontHeaders = Record<string, { key?: string; value: string }[]>;

/** CloudFrontRequest is a viewer's request. */
export interface CloudFrontRequest {
  method: string;
  uri: string;
  querystring: string;
  clientIp: string;
  headers: CloudFrontHeaders;
}

/** CloudFrontResponse is a response of the site or of a function. */
export interface CloudFrontResponse {
  status: string;
  statusDescription?: string;
  headers: CloudFrontHeaders;
  body?: string;
}

/** CloudFrontEvent is a function's argument. */
export interface CloudFrontEvent {
  Records: { cf: { request: CloudFrontRequest; response?: CloudFrontResponse } }[];
}

/** cloudFront returns the functions for the viewer request and the viewer response. */
export function cloudFront(connector: Connector): {
  viewerRequest: (event: CloudFrontEvent) => Promise<CloudFrontRequest | CloudFrontResponse>;
  viewerResponse: (event: CloudFrontEvent) => Promise<CloudFrontResponse>;
} {
  return {
    viewerRequest: (event) =>
      settled(async (waitUntil) => {
        const { request } = recordOf(event);
        const asked = requestOf(request);
        if (!asked) return fromResponse(await connector.malformed(new Request("https://malformed.invalid/")));
        const outcome = await connector.guard(asked, {
          client: request.clientIp,
          waitUntil,
          endsWithRequest: true,
          isReused: true,
        });
        return outcome instanceof Response
          ? fromResponse(outcome)
          : withRequest(request, outcome.request, await connector.beginning(outcome));
      }),
    viewerResponse: (event) =>
      settled(async (waitUntil) => {
        const { request, response = { status: "500", headers: {} } } = recordOf(event);
        const context = { client: request.clientIp, waitUntil, endsWithRequest: true };
        const { "proofline-command": command = [], ...rest } = response.headers;
        const answer = new Response(null, {
          headers: toHeaders({ "proofline-command": command, "cache-control": rest["cache-control"] ?? [] }),
        }); // no more is looked at, and the rest may be what Headers refuse
        const { headers } = await connector.finish(
          await connector.resume(toRequest(request), context),
          answer,
          context,
        );
        const cookies = [...(rest["set-cookie"] ?? []), ...(cookiesOf(headers)["set-cookie"] ?? [])];
        return { ...response, headers: { ...rest, ...(cookies.length > 0 ? { "set-cookie": cookies } : {}) } };
      }),
  };
}

/** settled waits for all work, because a function stops when it has responded. */
async function settled<T>(run: (waitUntil: (work: Promise<unknown>) => void) => Promise<T>): Promise<T> {
  const waitUntil: Promise<unknown>[] = [];
  const answer = await run((work) => waitUntil.push(work));
  await Promise.allSettled(waitUntil);
  return answer;
}

function recordOf(event: CloudFrontEvent): CloudFrontEvent["Records"][0]["cf"] {
  const [record] = event.Records;
  if (!record) throw new Error("a CloudFront event must have a record");
  return record.cf;
}

function toHeaders(all: CloudFrontHeaders): Headers {
  const headers = new Headers();
  for (const [name, lines] of Object.entries(all)) {
    if (name === "cookie") headers.set(name, lines.map(({ value }) => value).join("; "));
    else for (const { value } of lines) headers.append(name, value);
  }
  return headers;
}

/** requestOf is toRequest; undefined: the host, the method or a header is malformed. */
function requestOf(r: CloudFrontRequest): Request | undefined {
  try {
    return toRequest(r);
  } catch {
    return undefined;
  }
}

/** toRequest returns a request without its body, which no rule needs. */
function toRequest(r: CloudFrontRequest): Request {
  const host = r.headers.host?.[0]?.value ?? "";
  return new Request(`https://${host}${r.uri}${r.querystring ? `?${r.querystring}` : ""}`, {
    method: r.method,
    headers: toHeaders(r.headers),
  });
}

/** withRequest returns the request for the site: the one checked, with the connector's headers. */
function withRequest(r: CloudFrontRequest, decided: Request, begun: string | undefined): CloudFrontRequest {
  const url = new URL(decided.url);
  const headers = Object.fromEntries(
    Object.entries(r.headers).filter(([name]) => decided.headers.has(name) || name === "host"),
  );
  for (const key of ["X-Proofline-Ticket", "X-Proofline-Room"]) {
    const value = decided.headers.get(key);
    if (value !== null) headers[key.toLowerCase()] = [{ key, value }];
  }
  if (begun !== undefined) headers[begunHeader.toLowerCase()] = [{ key: begunHeader, value: begun }];
  return { ...r, uri: url.pathname, querystring: url.search.slice(1), headers };
}

function cookiesOf(headers: Headers): CloudFrontHeaders {
  const cookies = headers.getSetCookie();
  return cookies.length > 0 ? { "set-cookie": cookies.map((value) => ({ key: "Set-Cookie", value })) } : {};
}

async function fromResponse(response: Response): Promise<CloudFrontResponse> {
  const headers: CloudFrontHeaders = {};
  for (const [key, value] of response.headers) if (key !== "set-cookie") headers[key] = [{ key, value }];
  return {
    status: String(response.status),
    headers: { ...headers, ...cookiesOf(response.headers) },
    body: await response.text(),
  };
}
