// Duplicate members, which JSON.parse accepts: it uses the last one, other programs
// use the first.

/** duplicate returns the name of a duplicate member of an object in a JSON text; undefined: none. */
export function duplicate(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []; // names of open objects; undefined for lists
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]/g;
  for (let found = tokens.exec(text); found; found = tokens.exec(text)) {
    const [token] = found;
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (isName(text, tokens.lastIndex)) {
      const name = JSON.parse(token) as string;
      const names = open[open.length - 1];
      if (names?.has(name)) return name;
      names?.add(name);
    }
  }
  return undefined;
}

/** isName reports whether a colon follows. */
function isName(text: string, at: number): boolean {
  while (/[ \t\r\n]/.test(text.charAt(at))) at++;
  return text[at] === ":";
}
