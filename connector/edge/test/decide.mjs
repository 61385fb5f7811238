// Reads lines with a document and requests, whose texts are base64 of bytes, and
// answers each with a line: the decisions, or null for an invalid document.
import { createInterface } from "node:readline";
import { decide, parse } from "../proofline-edge.js";

const bytes = (text) => Buffer.from(text ?? "", "base64").toString("latin1");

function answer({ document, requests }) {
  let site;
  try {
    site = parse(Buffer.from(document, "base64").toString());
  } catch (error) {
    if (error.problems) return null;
    throw error;
  }
  return requests.map((r) => {
    const headers = new Map(
      Object.entries(r.Header ?? {}).map(([name, lines]) => [name.toLowerCase(), lines.map(bytes)]),
    );
    const request = {
      method: r.Method,
      host: bytes(r.Host),
      target: bytes(r.Target),
      client: r.Client,
      header: (name) => headers.get(name) ?? [],
    };
    return decide(site, request, r.Now);
  });
}

for await (const line of createInterface({ input: process.stdin }))
  console.log(JSON.stringify(answer(JSON.parse(line))));
