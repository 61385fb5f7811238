// Strings whose characters are bytes, as in the connectors in other languages:
// percent-escapes need not stand for UTF-8.

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/** utf8 returns the UTF-8 bytes of a text as characters. */
export function utf8(text: string): string {
  return /^[\0-\x7f]*$/.test(text) ? text : fromBytes(encoder.encode(text));
}

/** toBytes converts characters to bytes. */
export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

/** fromBytes converts bytes to characters. */
export function fromBytes(bytes: Uint8Array): string {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return text;
}

/** fromUTF8 decodes valid UTF-8. */
export function fromUTF8(bytes: string): string {
  return decoder.decode(toBytes(bytes));
}

/** isUTF8 reports whether bytes are valid UTF-8. */
export function isUTF8(text: string): boolean {
  try {
    decoder.decode(toBytes(text));
    return true;
  } catch {
    return false;
  }
}

/** lower lowers the letters A-Z, and no others. */
export function lower(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** decodeQuery decodes part of a query. An invalid escape stays as it is. */
export function decodeQuery(text: string): string {
  return text
    .replace(/\+/g, " ")
    .replace(/%([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}

/** hasBadEscape reports whether a % does not begin a percent-escape. */
export function hasBadEscape(text: string): boolean {
  return /%(?![0-9a-fA-F]{2})/.test(text);
}

const alphabet = /^[A-Za-z0-9_-]*$/;

/** base64url encodes without padding. */
export function base64url(bytes: Uint8Array): string {
  return btoa(fromBytes(bytes)).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}

/** fromBase64url decodes canonical base64url; undefined: anything else. */
export function fromBase64url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!alphabet.test(text) || text.length % 4 === 1) return undefined;
  const bytes = toBytes(atob(text.replace(/-/g, "+").replace(/_/g, "/")));
  return base64url(bytes) === text ? bytes : undefined;
}
