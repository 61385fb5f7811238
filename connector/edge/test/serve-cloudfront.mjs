// Runs the functions for CloudFront of proofline-edge.js, bound to what the
// standard input's first line says (JSON), and prints the address of a server
// that does what AWS documents of CloudFront around them: which headers they
// see, what they may change, and when they are called. Each of the two has an
// instance of its own. What is not documented so answers 502, as CloudFront
// does. Ends with the standard input.
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/lambda-event-structure.html
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/edge-function-restrictions-all.html
import { createServer, request as ask } from "node:http";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { cloudFront, Connector, optionsOf } from "../proofline-edge.js";

const hidden = /^(connection|expect|keep-alive|proxy-.*|trailer|upgrade|x-accel-.*|x-amz-cf-.*|x-amzn-.*|x-cache|x-edge-.*|x-forwarded-proto|x-real-ip)$/;
const fixed = ["content-length", "host", "transfer-encoding", "via"]; // in requests
const fixedBack = ["transfer-encoding", "via"]; // in answers
const methods = ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"];
const mostMade = 40 << 10; // bytes of an answer that a function makes
const config = { distributionDomainName: "d111111abcdef8.cloudfront.net", distributionId: "EDFDVBD6EXAMPLE", requestId: "4TyzHTaYWb1GX1qTfsHhEqV6HUDd_BzoBZnwfnvQc_1oF26ClkoUSEQ==" };

/** documentOf returns raw headers as functions see them. */
function documentOf(raw) {
  const headers = {};
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i].toLowerCase();
    if (!hidden.test(name)) (headers[name] ??= []).push({ key: raw[i], value: raw[i + 1] });
  }
  return headers;
}

/** rawOf returns headers as they are sent. */
function rawOf(headers, isSent = () => true) {
  return Object.entries(headers).filter(([name]) => isSent(name)).flatMap(([name, lines]) => lines.flatMap(({ key, value }) => [key ?? name, value]));
}

/** isValid tells whether a function has left alone what it may not change. */
function isValid(headers, before, fixedNames) {
  return Object.keys(headers).every((name) => name === name.toLowerCase() && !hidden.test(name)) && fixedNames.every((name) => isDeepStrictEqual(headers[name], before[name]));
}

/** pass asks the site, by an origin request policy with all headers but those that begin with X-Proofline- and are not said in README.md. */
function pass(origin, { method, uri, querystring, headers }, body) {
  const isSent = (name) => !name.startsWith("x-proofline-") || name === "x-proofline-ticket" || name === "x-proofline-room";
  return new Promise((done, fail) => {
    const path = uri + (querystring ? `?${querystring}` : "");
    const out = ask(origin, { method, path, headers: rawOf(headers, isSent), agent: false }, done);
    out.once("error", fail);
    body.pipe(out);
  });
}

/** answer is what CloudFront does with a request. */
async function answer({ viewerRequest, viewerResponse }, origin, r, w) {
  if (!methods.includes(r.method)) return void w.writeHead(405).end();
  const [, uri = "", querystring = ""] = /^([^?]*)\??(.*)$/.exec(r.url) ?? [];
  const request = { clientIp: r.socket.remoteAddress, headers: documentOf(r.rawHeaders), method: r.method, querystring, uri };
  const event = (eventType, more) => structuredClone({ Records: [{ cf: { config: { ...config, eventType }, ...more } }] });
  const decided = structuredClone(await viewerRequest(event("viewer-request", { request })));
  if ("status" in decided) {
    const { status, headers, body = "" } = decided;
    if (typeof status !== "string" || !isValid(headers, {}, fixedBack) || JSON.stringify(decided).length > mostMade) throw new Error(`no answer: ${JSON.stringify(decided)}`);
    return void w.writeHead(Number(status), rawOf(headers)).end(body);
  }
  if (!isValid(decided.headers, request.headers, fixed) || !decided.uri.startsWith("/") || decided.method !== request.method || decided.clientIp !== request.clientIp) throw new Error(`no request: ${JSON.stringify(decided)}`);
  const back = await pass(origin, decided, r);
  const response = { headers: documentOf(back.rawHeaders), status: String(back.statusCode), statusDescription: back.statusMessage };
  const changed = back.statusCode < 400 ? structuredClone(await viewerResponse(event("viewer-response", { request: decided, response }))) : response;
  if (changed.status !== response.status || !isValid(changed.headers, response.headers, fixedBack)) throw new Error(`no answer: ${JSON.stringify(changed)}`);
  back.pipe(w.writeHead(back.statusCode, rawOf(changed.headers)));
}

const lines = createInterface({ input: process.stdin });
let server;
lines.once("line", (line) => {
  const bindings = JSON.parse(line);
  const instance = () => cloudFront(new Connector(optionsOf(bindings)));
  const functions = { viewerRequest: instance().viewerRequest, viewerResponse: instance().viewerResponse };
  server = createServer((r, w) => {
    answer(functions, bindings.PROOFLINE_ORIGIN, r, w).catch((error) => {
      console.error(error);
      w.writeHead(502).end();
    });
  });
  server.listen(0, "127.0.0.1", () => console.log(`127.0.0.1:${server.address().port}`));
});
lines.once("close", () => server?.close(() => process.exit()));
