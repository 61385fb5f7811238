// The dialog's texts, in the languages of the connector's pages.

/** Words is the dialog's texts in one language. */
export type Words = readonly [question: string, yes: string, no: string];

const english: Words = ["There is a waiting line. Join it?", "Join the line", "Not now"];

const others: Record<string, Words> = {
  de: ["Hier gibt es eine Warteschlange. Möchten Sie sich anstellen?", "Anstellen", "Jetzt nicht"],
  es: ["Hay una fila de espera. ¿Quieres ponerte en ella?", "Ponerme en la fila", "Ahora no"],
  fr: ["Il y a une file d’attente. Voulez-vous la rejoindre ?", "Rejoindre la file", "Pas maintenant"],
  it: ["C’è una fila d’attesa. Vuoi metterti in fila?", "Mettiti in fila", "Non ora"],
  pt: ["Há uma fila de espera. Quer entrar nela?", "Entrar na fila", "Agora não"],
  ja: ["待ち列があります。並びますか？", "列に並ぶ", "今はやめる"],
  ar: ["يوجد طابور انتظار. هل تريد الانضمام إليه؟", "الانضمام إلى الطابور", "ليس الآن"],
};

/** wordsFor returns the texts for a language such as "de-AT", or in English, with their language. */
export function wordsFor(tag: string): readonly [lang: string, ...Words] {
  const lang = tag.slice(0, 2).toLowerCase();
  const words = others[lang];
  return words ? [lang, ...words] : ["en", ...english];
}
