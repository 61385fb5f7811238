// Client addresses and networks.

/** Address is four or sixteen bytes. IPv4 in IPv6 counts as IPv4. */
export type Address = readonly number[];

/** Network is the addresses with a common prefix. */
export interface Network {
  base: Address;
  bits: number;
}

/** parseAddress parses an address; undefined: malformed, or with a zone. */
export function parseAddress(text: string): Address | undefined {
  return unmapped(parseV4(text) ?? parseV6(text));
}

function unmapped(address: Address | undefined): Address | undefined {
  return isMapped(address) ? address?.slice(12) : address;
}

function isMapped(address: Address | undefined): boolean {
  return (
    address?.length === 16 && address.slice(0, 10).every((b) => b === 0) && address[10] === 255 && address[11] === 255
  );
}

function parseV4(text: string): Address | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((p) => /^(0|[1-9][0-9]{0,2})$/.test(p) && Number(p) < 256)) return undefined;
  return parts.map(Number);
}

function parseV6(text: string): Address | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = [groups(halves[0] ?? "", halves.length === 1), groups(halves[1] ?? "", true)];
  if (!head || !tail) return undefined;
  const missing = 16 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 2) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/** groups parses one side of ::, which may end with IPv4. */
function groups(text: string, isEnd: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    const v4 = isEnd && i === parts.length - 1 ? parseV4(part) : undefined;
    if (v4) bytes.push(...v4);
    else if (/^[0-9a-fA-F]{1,4}$/.test(part)) bytes.push(parseInt(part, 16) >> 8, parseInt(part, 16) & 255);
    else return undefined;
  }
  return bytes;
}

/** parseNetwork parses a network whose bits after the prefix are zero; undefined: malformed. */
export function parseNetwork(text: string): Network | undefined {
  const [address = "", length = "", more] = text.split("/");
  const base = parseV4(address) ?? parseV6(address);
  const bits = Number(length);
  if (!base || isMapped(base) || more !== undefined || !/^(0|[1-9][0-9]{0,2})$/.test(length) || bits > base.length * 8)
    return undefined;
  return masked(base, bits).every((b, i) => b === base[i]) ? { base, bits } : undefined;
}

/** masked returns an address with zeros after its prefix. */
export function masked(address: Address, bits: number): Address {
  return address.map((b, i) => b & (0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))));
}

/** contains reports whether an address is in a network. */
export function contains(network: Network, address: Address): boolean {
  return network.base.length === address.length && masked(address, network.bits).every((b, i) => b === network.base[i]);
}
