/** Alerts a visitor who looks away: by sound, and by a notification where that is allowed. */
export class Alert {
  #audio: AudioContext | undefined;

  get isOn(): boolean {
    return this.#audio !== undefined;
  }

  /** Turns alerts on, from a click handler only, or browsers refuse. Reports whether notifications are allowed. */
  async turnOn(): Promise<boolean> {
    this.#audio = new AudioContext();
    void this.#audio.resume();
    this.#chime(0, 0.03);
    if (!("Notification" in window)) return false;
    return (await Notification.requestPermission()) === "granted";
  }

  turnOff(): void {
    void this.#audio?.close();
    this.#audio = undefined;
  }

  /** Alerts the visitor. */
  ring(title: string, body: string): void {
    if (!this.#audio) return;
    for (let i = 0; i < 3; i++) this.#chime(i * 1.2, 0.25);
    navigator.vibrate?.([300, 150, 300]);
    try {
      if (Notification.permission !== "granted") return;
      const note = new Notification(title, { body, tag: "proofline", requireInteraction: true });
      note.onclick = () => {
        window.focus();
        note.close();
      };
    } catch {
      // Some browsers do not let pages show notifications: the sound has to suffice.
    }
  }

  /** Two soft tones, after a number of seconds. */
  #chime(after: number, volume: number): void {
    const audio = this.#audio;
    if (!audio) return;
    for (const [i, frequency] of [659.25, 880].entries()) {
      const start = audio.currentTime + after + i * 0.18;
      const gain = audio.createGain();
      gain.gain.setValueAtTime(0, start);
      gain.gain.linearRampToValueAtTime(volume, start + 0.02);
      gain.gain.exponentialRampToValueAtTime(0.0001, start + 0.7);
      gain.connect(audio.destination);
      const tone = audio.createOscillator();
      tone.frequency.value = frequency;
      tone.connect(gain);
      tone.start(start);
      tone.stop(start + 0.75);
    }
  }
}
