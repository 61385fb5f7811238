// Proofs that this browser has the key of a session: see
// connector/rules/FORMAT.md, "Sessions and browsers".

/** Visit is a session, as the connector describes it. */
export interface Visit {
  name: string; // of the room
  subject: string;
  room: string; // URL
  bound: boolean; // tied to a key
}

/** Kept is what the browser stores for a session. The private key cannot leave it. */
interface Kept {
  name: string;
  subject: string;
  ahead: number; // lead of the server's clock over this one, in milliseconds
  keys: CryptoKeyPair;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256" };

function request<T>(asked: IDBRequest<T>): Promise<T> {
  return new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}

async function store(mode: IDBTransactionMode): Promise<IDBObjectStore> {
  const opened = indexedDB.open("proofline", 1);
  opened.onupgradeneeded = () => opened.result.createObjectStore("visits", { keyPath: "name" });
  return (await request(opened)).transaction("visits", mode).objectStore("visits");
}

/** begin creates, stores and proves a key for a session. */
export async function begin({ name, subject }: Visit, ahead: number): Promise<void> {
  const keys = await crypto.subtle.generateKey(algorithm, false, ["sign"]);
  const kept = { name, subject, ahead, keys };
  await request((await store("readwrite")).put(kept));
  await prove(kept);
}

/** again proves the key of a session. False: this browser does not have it. */
export async function again({ name, subject }: Visit, ahead: number): Promise<boolean> {
  const kept = (await request<Kept | undefined>((await store("readonly")).get(name))) ?? undefined;
  if (kept?.subject !== subject) return false;
  kept.ahead = ahead;
  await request((await store("readwrite")).put(kept));
  await prove(kept);
  return true;
}

/** renew proves all stored keys. */
export async function renew(): Promise<void> {
  for (const kept of await request<Kept[]>((await store("readonly")).getAll())) await prove(kept);
}

let ended = 0; // how often sessions have ended here: a proof begun before that is not stored

/** cancel keeps proofs in progress from being stored. */
export function cancel(): void {
  ended++;
}

/** forget deletes all keys and their proofs. */
export async function forget(): Promise<void> {
  cancel();
  for (const name of await request((await store("readonly")).getAllKeys())) setProof(String(name), "", "; Max-Age=0");
  await request((await store("readwrite")).clear());
}

function setProof(name: string, value: string, attributes = ""): void {
  // biome-ignore lint/suspicious/noDocumentCookie: not every browser has the Cookie Store API
  document.cookie = `__Host-proofline-proof.${name}=${value}; Path=/; Secure; SameSite=Lax${attributes}`;
}

async function prove({ name, subject, ahead, keys }: Kept): Promise<void> {
  const begun = ended;
  const at = Math.round(Date.now() + ahead);
  const signed = new TextEncoder().encode(`proofline proof 1\n${subject}\n${at}`);
  const time = new DataView(new ArrayBuffer(8));
  time.setBigUint64(0, BigInt(at));
  const parts = [
    time.buffer,
    await crypto.subtle.exportKey("raw", keys.publicKey),
    await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, keys.privateKey, signed),
  ];
  const text = parts.flatMap((part) => Array.from(new Uint8Array(part), (byte) => String.fromCharCode(byte))).join("");
  const value = btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  if (begun === ended) setProof(name, value);
}
