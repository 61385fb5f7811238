import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer } from "node:http";

const clientID = "proofline";
const clientSecret = "the-client-secret";
const base64 = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** An OpenID Connect provider, at which visitors sign in with any name. */
export class Provider {
  #keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  #granted = new Map(); // what was asked for, and the name, by code

  static async open() {
    const provider = new Provider();
    provider.server = createServer((request, answer) => provider.#serve(request, answer));
    await new Promise((done) => provider.server.listen(0, "127.0.0.1", done));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  /** The flags of a server whose issuer uses the provider, besides that of the file with the secret. */
  get flags() {
    return ["--issuer-oidc", this.url, "--issuer-oidc-client", clientID];
  }

  get secret() {
    return clientSecret;
  }

  async #serve(request, answer) {
    let body = "";
    for await (const part of request) body += part;
    const url = new URL(request.url, this.url);
    const json = (value) => answer.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    switch (`${request.method} ${url.pathname}`) {
      case "GET /.well-known/openid-configuration":
        return json({
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          jwks_uri: `${this.url}/keys`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["ES256"],
        });
      case "GET /keys":
        return json({
          keys: [{ ...this.#keys.publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256", use: "sig" }],
        });
      case "GET /authorize":
        return answer.writeHead(200, { "Content-Type": "text/html" }).end(page);
      case "POST /authorize": {
        const [asked, code] = [url.searchParams, randomUUID()];
        this.#granted.set(code, { asked, name: new URLSearchParams(body).get("name") });
        const back = new URL(asked.get("redirect_uri"));
        back.search = new URLSearchParams({ code, state: asked.get("state") });
        return answer.writeHead(303, { Location: back.href }).end();
      }
      case "POST /token":
        return json({
          access_token: "none",
          token_type: "Bearer",
          id_token: this.#token(request, new URLSearchParams(body)),
        });
      default:
        return answer.writeHead(404).end();
    }
  }

  /** Trades a code for an ID token, once. */
  #token(request, form) {
    const { asked, name } = this.#granted.get(form.get("code"));
    this.#granted.delete(form.get("code"));
    const basic = Buffer.from(`${clientID}:${clientSecret}`).toString("base64");
    assert.equal(request.headers.authorization, `Basic ${basic}`);
    const challenge = createHash("sha256").update(form.get("code_verifier")).digest("base64url");
    assert.equal(challenge, asked.get("code_challenge"));
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.url, aud: clientID, sub: name, iat: now, exp: now + 600, nonce: asked.get("nonce") };
    const text = `${base64({ alg: "ES256", kid: "1" })}.${base64(claims)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#keys.privateKey, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

const page = `<!doctype html><html lang="en"><title>Sign in</title><link rel="icon" href="data:,"><h1>Sign in</h1>
  <form method="post"><label>Your name <input name="name"></label> <button>Sign in</button></form>`;
