// Texts whose characters are bytes, as the connectors in other languages have
// them: what a percent-escape stands for need not be UTF-8.

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** utf8 returns the UTF-8 bytes of a text as characters. */
export function utf8(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : fromBytes(encoder.encode(text));
}

/** toBytes returns the bytes that a text's characters are. */
export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

/** fromBytes returns the text whose characters are the bytes. */
export function fromBytes(bytes: Uint8Array): string {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return text;
}

/** fromUTF8 returns the text that valid UTF-8 bytes are. */
export function fromUTF8(bytes: string): string {
  return decoder.decode(toBytes(bytes));
}

/** isUTF8 tells whether bytes are UTF-8. */
export function isUTF8(text: string): boolean {
  try {
    decoder.decode(toBytes(text));
    return true;
  } catch {
    return false;
  }
}

/** lower returns a text with the letters A-Z in lower case, and no others. */
export function lower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** decodeQuery decodes a part of a query. A bad escape stays as it is. */
export function decodeQuery(text: string): string {
  return text.replace(/\+/g, " ").replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/** hasBadEscape tells whether a % is no percent-escape. */
export function hasBadEscape(text: string): boolean {
  return /%(?![0-9a-fA-F]{2})/.test(text);
}

const alphabet = /^[A-Za-z0-9_-]*$/;

/** base64url encodes without padding. */
export function base64url(bytes: Uint8Array): string {
  return btoa(fromBytes(bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}

/** fromBase64url decodes what base64url encodes, and nothing else. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!alphabet.test(text) || text.length % 4 === 1) return undefined;
  const bytes = toBytes(atob(text.replace(/-/g, "+").replace(/_/g, "/")));
  return base64url(bytes) === text ? bytes : undefined;
}
