import { createServer } from "node:net";
import { createInterface } from "node:readline";

import { until } from "./room.mjs";

/** A mail server that keeps the codes of mails. */
export class MailServer {
  codes = [];

  static async open() {
    const mail = new MailServer();
    mail.server = createServer((socket) => {
      let reading = false;
      createInterface({ input: socket }).on("line", (line) => {
        if (reading) {
          mail.codes.push(...(line.match(/\b[0-9A-Z]{4}(-[0-9A-Z]{4}){3}\b/g) ?? []));
          if (line !== ".") return;
        }
        reading = line === "DATA";
        socket.write(reading ? "354 go on\r\n" : line === "QUIT" ? "221 bye\r\n" : "250 ok\r\n");
      });
      socket.on("error", () => {});
      socket.write("220 test\r\n");
    });
    await new Promise((done) => mail.server.listen(0, "127.0.0.1", done));
    mail.address = `smtp://127.0.0.1:${mail.server.address().port}?from=club@example.org`;
    return mail;
  }

  /** The code of the next mail. */
  code() {
    return until("a mail has come", () => this.codes.shift());
  }

  close() {
    this.server.close();
  }
}
