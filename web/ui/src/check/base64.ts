import { FormatError } from "./errors.ts";

/** Standard alphabet with padding, RFC 4648 section 4. */
export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** Reads what toBase64 writes and nothing else: no spaces, no stray bits, no missing padding. */
export function fromBase64(text: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    throw new FormatError("not base64");
  }
  if (toBase64(bytes) !== text) throw new FormatError("base64 not canonical");
  return bytes;
}

/** URL alphabet without padding, RFC 4648 section 5. */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Reads what toBase64Url writes and nothing else. */
export function fromBase64Url(text: string): Uint8Array {
  const padding = "=".repeat((4 - (text.length % 4)) % 4);
  const bytes = fromBase64(text.replaceAll("-", "+").replaceAll("_", "/") + padding);
  if (toBase64Url(bytes) !== text) throw new FormatError("base64url not canonical");
  return bytes;
}
