import { after, before } from "node:test";

import { Organizer } from "./organizer.mjs";
import { Server } from "./server.mjs";

/**
 * Starts a separate server for the test file, and returns a function that opens a new browser for its owner. The
 * first call creates the account; later ones are signed in with its cookies.
 */
export function ownServer() {
  let kept;
  const own = { server: undefined, owner };
  before(async () => (own.server = await Server.start()));
  after(() => own.server?.stop());
  return own;

  async function owner(stage, options) {
    stage.origins = [own.server.url];
    const organizer = await Organizer.at(stage, own.server, "owner@example.com", { storageState: kept, ...options });
    if (!kept) {
      await organizer.setUp("Concert hall", "Box office");
      kept = await organizer.context.storageState();
    }
    return organizer;
  }
}
