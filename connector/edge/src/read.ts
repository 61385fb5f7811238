// Answers of servers, of which no more is read than they may have.

/** read returns the text of an answer. It throws when there are more than so many bytes, or they are not UTF-8. */
export async function read(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const reader = response.body?.getReader();
  let [text, size] = ["", 0];
  for (;;) {
    const chunk = await reader?.read();
    if (!reader || !chunk || chunk.done) return text + decoder.decode();
    size += chunk.value.byteLength;
    if (size > most) {
      await reader.cancel();
      throw new Error(`the answer has more than ${most} bytes`);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}
