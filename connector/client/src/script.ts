// The classic script: <script src="/.proofline/wait.js" data-mode="dialog">.
import { watch } from "./wait.ts";

const { mode, hosts = "" } = document.currentScript?.dataset ?? {};
watch({ mode: mode === "dialog" ? "dialog" : "lead", hosts: hosts.split(/[\s,]+/) });
