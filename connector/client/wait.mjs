// src/proof.ts
function request(asked) {
  return new Promise((done, fail) => {
    asked.onsuccess = () => done(asked.result);
    asked.onerror = () => fail(asked.error);
  });
}
async function store(mode) {
  const opened = indexedDB.open("proofline", 1);
  opened.onupgradeneeded = () => opened.result.createObjectStore("visits", { keyPath: "name" });
  return (await request(opened)).transaction("visits", mode).objectStore("visits");
}
async function renew() {
  for (const kept of await request((await store("readonly")).getAll())) await prove(kept);
}
var ended = 0;
function cancel() {
  ended++;
}
async function forget() {
  cancel();
  for (const name of await request((await store("readonly")).getAllKeys())) setProof(String(name), "", "; Max-Age=0");
  await request((await store("readwrite")).clear());
}
function setProof(name, value, attributes = "") {
  document.cookie = `__Host-proofline-proof.${name}=${value}; Path=/; Secure; SameSite=Lax${attributes}`;
}
async function prove({ name, subject, ahead, keys }) {
  const begun = ended;
  const at = Math.round(Date.now() + ahead);
  const signed = new TextEncoder().encode(`proofline proof 1
${subject}
${at}`);
  const time = new DataView(new ArrayBuffer(8));
  time.setBigUint64(0, BigInt(at));
  const parts = [
    time.buffer,
    await crypto.subtle.exportKey("raw", keys.publicKey),
    await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, keys.privateKey, signed)
  ];
  const text = parts.flatMap((part) => Array.from(new Uint8Array(part), (byte) => String.fromCharCode(byte))).join("");
  const value = btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  if (begun === ended) setProof(name, value);
}

// src/words.ts
var english = ["There is a waiting line. Join it?", "Join the line", "Not now"];
var others = {
  de: ["Hier gibt es eine Warteschlange. Möchten Sie sich anstellen?", "Anstellen", "Jetzt nicht"],
  es: ["Hay una fila de espera. ¿Quieres ponerte en ella?", "Ponerme en la fila", "Ahora no"],
  fr: ["Il y a une file d’attente. Voulez-vous la rejoindre ?", "Rejoindre la file", "Pas maintenant"],
  it: ["C’è una fila d’attesa. Vuoi metterti in fila?", "Mettiti in fila", "Non ora"],
  pt: ["Há uma fila de espera. Quer entrar nela?", "Entrar na fila", "Agora não"],
  ja: ["待ち列があります。並びますか？", "列に並ぶ", "今はやめる"],
  ar: ["يوجد طابور انتظار. هل تريد الانضمام إليه؟", "الانضمام إلى الطابور", "ليس الآن"]
};
function wordsFor(tag) {
  const lang = tag.slice(0, 2).toLowerCase();
  const words = others[lang];
  return words ? [lang, ...words] : ["en", ...english];
}

// src/wait.ts
var memoryName = "proofline-wait";
var watched = Symbol.for(memoryName);
var soon = 6e5;
var slow = 3e4;
var renewAgain = 45e3;
var isAsking = false;
var isDressed = false;
var isTaken = false;
var isQuiet = false;
function watch({ mode, hosts = [] } = {}) {
  if (Object.hasOwn(window, watched)) return;
  Object.defineProperty(window, watched, {});
  arrive();
  keepProving();
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    isTaken = false;
    arrive();
  });
  const look = (from, status, header) => {
    const { origin, host } = new URL(from, location.href);
    const isHere = origin === location.origin;
    if (status !== 403 || isTaken || !(isHere || hosts.includes(host))) return;
    const room = header("Proofline-Queue");
    if (!room) return;
    const back = isHere && header("Proofline-Return") || "";
    const join = isHere && back !== "enter" ? joinURL(room, { to: page(), to_sig: back }) : joinURL(`${origin}/.proofline/enter`, { room, to: page() });
    if (!join || !dispatchEvent(new CustomEvent("proofline:queue", { cancelable: true, detail: { room, join } })) || window !== top)
      return;
    if (mode === "dialog" || isSoon()) ask(join);
    else go(join);
  };
  window.fetch = new Proxy(fetch, {
    apply(send, self, args) {
      const answer = Reflect.apply(send, self, args);
      answer.then(
        (r) => look(r.url, r.status, (name) => r.headers.get(name)),
        () => {
        }
        // the page handles errors
      );
      return answer;
    }
  });
  const { prototype } = XMLHttpRequest;
  prototype.send = new Proxy(prototype.send, {
    apply(send, self, args) {
      self.addEventListener(
        "loadend",
        () => look(self.responseURL, self.status, (name) => self.getResponseHeader(name)),
        { once: true }
      );
      return Reflect.apply(send, self, args);
    }
  });
}
async function leave() {
  cancel();
  const answer = await fetch("/.proofline/release", { method: "POST", keepalive: true }).catch(() => void 0);
  if (answer?.status !== 204) return false;
  await forget().catch(() => void 0);
  return true;
}
var page = () => location.href.replace(/#.*/, "");
function joinURL(address, members) {
  try {
    const url = new URL(address);
    for (const [name, value] of Object.entries(members)) if (value) url.searchParams.set(name, value);
    return /^https?:$/.test(url.protocol) ? url.href : void 0;
  } catch {
    return void 0;
  }
}
function go(join) {
  isTaken = true;
  setTimeout(() => isTaken = false, slow);
  keep({ page: page(), hash: location.hash });
  location.assign(join);
}
function ask(join) {
  if (isAsking || isQuiet) return;
  isAsking = true;
  const [lang, question, yes, no] = wordsFor(document.documentElement.lang || navigator.language);
  const dialog = make("dialog", { className: "proofline-queue", lang, dir: lang === "ar" ? "rtl" : "ltr" });
  const text = make("p", { id: "proofline-queue", textContent: question });
  dialog.setAttribute("aria-labelledby", text.id);
  dress();
  dialog.append(
    text,
    button(yes, () => go(join)),
    " ",
    button(no, () => dialog.close())
  );
  dialog.onclose = () => {
    dialog.remove();
    isAsking = false;
    isQuiet = true;
    for (const kind of ["click", "keydown"])
      addEventListener(kind, () => isQuiet = false, { once: true, capture: true });
  };
  (document.body ?? document.documentElement).append(dialog);
  dialog.showModal();
}
var looks = `
:where(.proofline-queue) { box-sizing: border-box; max-width: min(24em, 100% - 2em); padding: 1.25em; border: 1px solid; border-radius: .75em; font: 1rem/1.5 system-ui, sans-serif }
:where(.proofline-queue p) { margin: 0 0 1em }
:where(.proofline-queue button) { min-height: 2.75em; margin: 0 0 .25em; padding: .5em 1em; font: inherit }`;
function dress() {
  if (isDressed || !("adoptedStyleSheets" in document)) return;
  isDressed = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(looks);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
function make(name, what) {
  return Object.assign(document.createElement(name), what);
}
var button = (textContent, onclick) => make("button", { type: "button", textContent, onclick });
function keepProving() {
  const prove2 = () => {
    if (document.visibilityState === "visible") renew().catch(() => void 0);
  };
  prove2();
  setInterval(prove2, renewAgain);
  for (const kind of ["visibilitychange", "pageshow", "submit"]) addEventListener(kind, prove2, { capture: true });
}
function arrive() {
  const left = recall();
  if (!left?.page) return;
  if (left.page === page() && left.hash && !location.hash) history.replaceState(history.state, "", left.hash);
  keep({ back: Date.now() });
}
function isSoon() {
  const memory = recall();
  return !memory || Date.now() - (memory.back ?? 0) < soon;
}
function recall() {
  try {
    return JSON.parse(sessionStorage.getItem(memoryName) ?? "{}");
  } catch {
    return void 0;
  }
}
function keep(memory) {
  try {
    sessionStorage.setItem(memoryName, JSON.stringify(memory));
  } catch {
  }
}
export {
  leave,
  watch
};
// 56a1722c09ef3de0
