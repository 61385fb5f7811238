type Blinding = typeof import("./blinding.ts");

/** Reads the blind signature with which an issuer sends a visitor back, in the fragment of the address. */
export function signatureOf(hash: string): { method: string; signature: string } | undefined {
  const found = /^([a-z0-9-]{1,32}) ([0-9a-f]{512,1024})$/.exec(
    new URLSearchParams(hash.slice(1)).get("blind_signature") ?? "",
  );
  return found ? { method: found[1]!, signature: found[2]! } : undefined;
}

/** A credential as a join has it. */
export interface Shown {
  method: string;
  nullifier?: string;
  evidence: string;
}

/** Reads the credential with which an issuer sends a visitor back, in the fragment of the address. */
export function credentialOf(hash: string): { ticket: string; shown: Shown } | undefined {
  const fields = new URLSearchParams(hash.slice(1));
  const found = /^([a-z0-9-]{1,32}) ([0-9a-f]{64}) ([0-9a-f]{128})$/.exec(fields.get("credential") ?? "");
  if (!found) return undefined;
  const [, method, nullifier, evidence] = found as unknown as [string, string, string, string];
  return { ticket: fields.get("ticket") ?? "", shown: { method, nullifier, evidence } };
}

/** Loads what a form needs that leads to an issuer who signs blindly. */
export async function confirmationOf(form: HTMLFormElement): Promise<InstanceType<Blinding["Confirmation"]>> {
  const { Confirmation } = (await import(form.dataset.script!)) as Blinding;
  return new Confirmation(form);
}
