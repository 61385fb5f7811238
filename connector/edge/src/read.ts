// Reading responses of servers, up to a limit.

/** read returns the text of a response. It throws if the text is too long, or not UTF-8. */
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
      throw new Error(`the response has more than ${most} bytes`);
    }
    text += decoder.decode(chunk.value, { stream: true });
  }
}
