const longest = 63; // characters

/** Proposes a slug for a title, or "". The server proposes the same (web/console/format/read.go). */
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
