// Runs proofline-edge.js in Deno with the options in the first line of standard input
// (JSON), and prints the address. Ends with standard input.
import { Connector, optionsOf } from "../proofline-edge.js";

const read = Deno.stdin.readable.pipeThrough(new TextDecoderStream()).getReader();
let text = "";
while (!text.includes("\n")) text += (await read.read()).value ?? "\n";
const connector = new Connector(optionsOf(JSON.parse(text)));
const server = Deno.serve(
  { hostname: "127.0.0.1", port: 0, onListen: ({ hostname, port }) => console.log(`${hostname}:${port}`) },
  (request, info) => connector.fetch(request, { client: info.remoteAddr.hostname }),
);
while (!(await read.read()).done);
await server.shutdown();
