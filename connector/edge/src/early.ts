// Rules in force until the first rules arrive, if their server does not respond.
// Default rules for specific paths, such as health checks and webhooks of payment
// providers, let requests pass; the rest gets the retry page.
import shipped from "../../rules/defaults.json";
import { isWide } from "./match.ts";
import { parse, type Site } from "./rules.ts";

let early: Site | undefined;

export function earlyRules(): Site {
  const narrow = (shipped as { name: string; when: { path?: unknown } }[]).filter(
    ({ when }) => when.path !== undefined && !isWide(when.path),
  );
  const rules = narrow.map((rule) => ({ ...rule, name: rule.name.replace("default:", "") }));
  early ??= parse(
    JSON.stringify({ version: 1, defaults: "off", rules: [...rules, { name: "others", action: "block" }] }),
  );
  return early;
}
