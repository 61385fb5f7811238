import { fileURLToPath } from "node:url";

/** The folder of these tests. */
export const folder = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** The top of the repository. */
export const top = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

/** Where pictures of the pages are saved. */
export const screenshots = `${folder}/screenshots`;

/** The path of a built program. */
export const program = (name) => `${process.env.PROOFLINE_BIN ?? `${top}/bin`}/${name}`;
