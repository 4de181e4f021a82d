// The digests of long texts that were stored lately. A list of texts is a list of strings, which nothing can be remembered on; a
// step that adds one would hash all of them again.

/** Characters, of all texts together: as much as a long thread's pages, and no more than a process can spare. */
const MAX_CHARS = 16_000_000;

export class KnownTexts {
  readonly #digests = new Map<string, string>();
  #chars = 0;

  get(text: string): string | undefined {
    const digest = this.#digests.get(text);
    if (digest === undefined) return undefined;
    // The one used last goes last.
    this.#digests.delete(text);
    this.#digests.set(text, digest);
    return digest;
  }

  add(text: string, digest: string): void {
    if (text.length > MAX_CHARS || this.#digests.has(text)) return;
    this.#digests.set(text, digest);
    this.#chars += text.length;
    for (const oldest of this.#digests.keys()) {
      if (this.#chars <= MAX_CHARS) return;
      this.#digests.delete(oldest);
      this.#chars -= oldest.length;
    }
  }
}
