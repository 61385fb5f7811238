// What JSON.parse lets pass: it takes the last of several members of one name,
// and others take the first.

/** duplicate returns the name of a member that is twice in one object of a JSON text; undefined: there is none. */
export function duplicate(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []; // the names of objects, undefined for lists
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

/** isName tells whether a colon is what comes next. */
function isName(text: string, at: number): boolean {
  while (/[ \t\r\n]/.test(text.charAt(at))) at++;
  return text[at] === ":";
}
