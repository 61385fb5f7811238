/** Thrown when a text or bytes are not in their one canonical form. */
export class FormatError extends Error {
  override name = "FormatError";
}

/** Thrown when a signature is missing or wrong. */
export class SignatureError extends Error {
  override name = "SignatureError";
}
