// The vectors and documents that all connectors share.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fromBase64url, utf8 } from "../src/bytes.ts";
import { duplicate } from "../src/json.ts";
import { type Decision, decide, InvalidError, parse, type Site } from "../src/rules.ts";

interface Vectors {
  sites: Record<string, unknown>;
  documents: { name: string; text: string; valid: boolean }[];
  cases: {
    name: string;
    site: string;
    now: string;
    request: { method: string; host: string; target: string; header?: Record<string, string[]>; client: string };
    decision: Partial<Decision>;
  }[];
}

const vectors = JSON.parse(readFileSync("../testdata/rules-vectors.json", "utf8")) as Vectors;

test("all vectors are decided alike", () => {
  const sites = new Map<string, Site>(
    Object.entries(vectors.sites).map(([name, site]) => [name, parse(JSON.stringify(site))]),
  );
  assert.ok(vectors.cases.length >= 200);
  for (const c of vectors.cases) {
    const site = sites.get(c.site);
    assert.ok(site, c.name);
    const headers = new Map(
      Object.entries(c.request.header ?? {}).map(([name, lines]) => [name.toLowerCase(), lines.map(utf8)]),
    );
    const { method, host, target, client = "" } = c.request;
    const got = decide(
      site,
      { method, host: utf8(host), target: utf8(target), client, header: (name) => headers.get(name) ?? [] },
      Date.parse(c.now),
    );
    assert.deepEqual(got, { room: "", rule: "", ...c.decision }, c.name);
  }
});

test("all documents are accepted or refused alike", () => {
  assert.ok(vectors.documents.length >= 20);
  for (const { name, text, valid } of vectors.documents) {
    if (valid) parse(text);
    else assert.throws(() => parse(text), InvalidError, name);
  }
});

test("duplicate members", () => {
  for (const [text, name] of [
    [`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}],"d":"a"}`, undefined],
    [`["a","a",{"a":"a"}]`, undefined],
    [`{"x\\\\":1,"x":2,"\\"":"x"}`, undefined],
    [`{"a":{},"b":{"c":[1,{"d":1 , "\\u0064" \n:2}]}}`, "d"],
    [`{"a":"\\"}","a":2}`, "a"],
    [`[{"":1,"":2}]`, ""],
    [`{"__proto__":1,"__proto__":2}`, "__proto__"],
  ] as const) {
    JSON.parse(text);
    assert.equal(duplicate(text), name, text);
  }
  assert.equal(duplicate(JSON.stringify({ a: '\\"'.repeat(1 << 19), b: 1 })), undefined);
});

const room = `"rooms":{"sale":{"url":"https://queue.example.com/r/sale"}}`;
const withRoom = (members: string) =>
  `{"version":1,"rooms":{"sale":{"url":"https://queue.example.com/r/sale",${members}}}}`;
const withRule = (members: string) => `{"version":1,${room},"rules":[{"name":"a","action":"queue sale",${members}}]}`;

test("valid documents", () => {
  const fine = [
    `{"version":1}`,
    `{"version":1,"rooms":null,"rules":null}`,
    withRoom(
      `"origin":"queue.example.com/r/sale","mode":"scheduled","from":"2027-01-01T10:00:00Z","until":"2027-01-02T10:00:00.5+02:00","failure":"fail-open-after 30s","bind":"network"`,
    ),
    `{"version":1,"rooms":{"a":{"url":"http://127.0.0.1:8080/r/a"},"b":{"url":"http://localhost:80/r/b"},"c":{"url":"http://[::1]:80/r/c"}}}`,
    withRule(
      `"when":{"path":{"any":[{"equals":"/a"},{"prefix":"/b c"},{"suffix":".x"},{"glob":"/*"},{"not":{"equals":"/q"}}]},"network":{"not":{"in":["10.0.0.0/8","::/0"]}},"header":{"in":{"equals":""}},"cookie":{"any":{"prefix":"x"}}}`,
    ),
  ];
  for (const text of fine) parse(text);
  const filled = parse(`{"version":1,${room}}`).rooms.get("sale");
  assert.deepEqual(
    [filled?.origin, filled?.mode, filled?.failure, filled?.bind],
    ["queue.example.com/r/sale", "always", "retry-page", "browser"],
  );
});

test("invalid documents, and the location of the first problem", () => {
  const bad: [string, string][] = [
    [`{}`, "version"],
    [`{"version":2}`, "version"],
    [`{"version":"1"}`, "version"],
    [`{"version":1,"safety":1}`, "safety"],
    [`{"version":1,"Rules":[]}`, "Rules"],
    [withRule(`"when":{"path":{"Prefix":"/a"}}`), "rules[0].when.path"],
    [`{"version":1,"defaults":"maybe"}`, "defaults"],
    [`{"version":1,"hosts":["Shop.example.com"]}`, "hosts[0]"],
    [`{"version":1,"hosts":["shop.example.com/x"]}`, "hosts[0]"],
    [`{"version":1,"rooms":{"A b":{"url":"https://queue.example.com/r/sale"}}}`, "rooms.A b"],
    [`{"version":1,"rooms":{"a":{"url":"http://queue.example.com/r/a"}}}`, "rooms.a.url"],
    [`{"version":1,"rooms":{"a":{"url":"http://localhost.example.com/r/a"}}}`, "rooms.a.url"],
    [`{"version":1,"rooms":{"a":{"url":"https://me@queue.example.com/r/a"}}}`, "rooms.a.url"],
    [`{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a/"}}}`, "rooms.a.url"],
    [`{"version":1,"rooms":{"a":{"url":"https://queue.example.com/r/a?x"}}}`, "rooms.a.url"],
    [withRoom(`"origin":"a b"`), "rooms.sale.origin"],
    [withRoom(`"mode":"safetynet"`), "rooms.sale.mode"],
    [withRoom(`"mode":"safety-net","from":"2027-01-01T10:00:00Z"`), "rooms.sale.mode"],
    [`{"version":1,"version":1}`, "version"],
    [withRoom(`"mode":"scheduled"`), "rooms.sale.mode"],
    [withRoom(`"mode":"scheduled","from":"2027-02-30T10:00:00Z"`), "rooms.sale.from"],
    [withRoom(`"from":"2027-01-01T10:00:00Z"`), "rooms.sale.mode"],
    [withRoom(`"mode":"scheduled","from":"2027-01-02T10:00:00Z","until":"2027-01-02T10:00:00Z"`), "rooms.sale.until"],
    [withRoom(`"failure":"open"`), "rooms.sale.failure"],
    [withRoom(`"failure":"fail-open-after 0s"`), "rooms.sale.failure"],
    [withRoom(`"failure":"fail-open-after 25h"`), "rooms.sale.failure"],
    [withRoom(`"bind":"device"`), "rooms.sale.bind"],
    [`{"version":1,"rules":[{"action":"bypass"}]}`, "rules[0].name"],
    [`{"version":1,"rules":[{"name":"default:x","action":"bypass"}]}`, "rules[0].name"],
    [`{"version":1,"rules":[{"name":"a","action":"bypass"},{"name":"a","action":"bypass"}]}`, "rules[1].name"],
    [`{"version":1,"rules":[{"name":"a","action":"queue sale"}]}`, "rules[0].action"],
    [`{"version":1,"rules":[{"name":"a","action":"allow"}]}`, "rules[0].action"],
    [withRule(`"when":{"path":{"equals":"/a","prefix":"/b"}}`), "rules[0].when.path"],
    [withRule(`"when":{"path":{"equals":"/a","url":null}}`), "rules[0].when.path"],
    [withRule(`"when":{"path":{}}`), "rules[0].when.path"],
    [withRule(`"when":{"path":{"any":[]}}`), "rules[0].when.path"],
    [withRule(`"when":{"path":{"not":{"not":{"not":{"not":{"equals":"/a"}}}}}}`), "rules[0].when.path.not.not.not.not"],
    [withRule(`"when":{"path":{"prefix":"a"}}`), "rules[0].when.path.prefix"],
    [withRule(`"when":{"path":{"prefix":"/a/../b"}}`), "rules[0].when.path.prefix"],
    [withRule(`"when":{"path":{"equals":"/a?b"}}`), "rules[0].when.path.equals"],
    [withRule(`"when":{"network":{"equals":"10.0.0.1"}}`), "rules[0].when.network"],
    [withRule(`"when":{"path":{"in":["10.0.0.0/8"]}}`), "rules[0].when.path"],
    [withRule(`"when":{"network":{"in":["10.0.0.1/8"]}}`), "rules[0].when.network.in[0]"],
    [withRule(`"when":{"network":{"in":["::ffff:10.0.0.0/104"]}}`), "rules[0].when.network.in[0]"],
    [withRule(`"when":{"header":{"a b":{"equals":"1"}}}`), "rules[0].when.header"],
    [withRule(`"when":{"host":{"equals":"a"}}`), "hosts"],
    [`[]`, ""],
    [`{"version":1} {}`, ""],
  ];
  for (const [text, field] of bad) {
    assert.throws(
      () => parse(text),
      (error: { problems?: { field: string }[] }) =>
        error.problems?.[0]?.field === field || assert.fail(`${text}: ${JSON.stringify(error.problems)}`),
    );
  }
  assert.throws(() => parse(" ".repeat((1 << 20) + 1)), /1 MiB/);
});

test("cases that are not in the vectors", () => {
  const site = parse(
    `{"version":1,${room},"defaults":"off","rules":[{"name":"b","when":{"path":{"equals":"/b"}},"action":"block"},{"name":"a","action":"queue sale","when":{"path":{"prefix":"/"}}}]}`,
  );
  const outcome = (target: string) =>
    decide(site, { method: "GET", host: "a", target, client: "", header: () => [] }, 0).outcome;
  assert.deepEqual(["/", "/x/y", "/B/", "/%62", "/x/../b", "/%zz"].map(outcome), [
    "queue",
    "queue",
    "block",
    "block",
    "block",
    "block",
  ]);
});

test("base64url has one spelling", () => {
  assert.deepEqual(fromBase64url("AA"), Uint8Array.of(0));
  assert.deepEqual(fromBase64url("_-8"), Uint8Array.of(255, 239));
  for (const text of ["A", "AB", "AA=", "AA==", "AA\n", " AA", "A+", "_-9"])
    assert.equal(fromBase64url(text), undefined, text);
});
