// Passes every element with data-island to the module of that name, and runs what all pages need.
import { copyButton, followLink, printButton } from "./account.ts";
import { brandForm, previewChoices } from "./brand.ts";
import { confirmActs } from "./confirm.ts";
import { messageControl } from "./message.ts";
import { rehearsal } from "./rehearsal.ts";
import { roomForm } from "./roomform.ts";
import { siteCheck, siteRules } from "./sites.ts";
import { localTimes } from "./times.ts";

type Island = (element: HTMLElement) => void;

const islands: Record<string, Island> = {
  brand: brandForm,
  preview: previewChoices,
  link: followLink,
  message: messageControl,
  continue: (form) => (form as HTMLFormElement).requestSubmit(),
  later: (form) => {
    setTimeout(() => (form as HTMLFormElement).requestSubmit(), Number(form.dataset.delay) * 1000);
  },
  copy: copyButton,
  print: printButton,
  rehearsal,
  "room-form": roomForm,
  "site-check": siteCheck,
  "site-rules": siteRules,
};

for (const element of document.querySelectorAll<HTMLElement>("[data-island]")) {
  islands[element.dataset.island ?? ""]?.(element);
}
localTimes(document);
confirmActs(document);
