const longest = 63; // characters

/** A slug that a title suggests, empty for none. The server proposes the same (web/console/format/read.go). */
export function slugOf(title: string): string {
  return title
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .toLowerCase()
    .replace(/\u00df/g, "ss")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, longest)
    .replace(/-+$/, "");
}
