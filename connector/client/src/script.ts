// The classic script: <script src="/.proofline/wait.js" data-mode="dialog">.
import { leave, watch } from "./wait.ts";

const { mode, hosts = "" } = document.currentScript?.dataset ?? {};
watch({ mode: mode === "dialog" ? "dialog" : "lead", hosts: hosts.split(/[\s,]+/) });
Object.defineProperty(window, "proofline", { value: { leave }, configurable: true });
