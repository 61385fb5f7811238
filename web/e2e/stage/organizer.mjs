import assert from "node:assert/strict";

import { Authenticator } from "./authenticator.mjs";
import { screenshots } from "./places.mjs";
import { Visitor } from "./visitor.mjs";

/** A password that is in no list of leaked passwords. */
const password = "violet anchor under seven tables";

/** An organizer with a browser. The account is identified by its e-mail address. */
export class Organizer extends Visitor {
  /** Opens a browser for an organizer at a server. */
  static async at(stage, server, email, options = {}) {
    const organizer = await Organizer.open(stage.browser, { origins: [server.url], ...options });
    Object.assign(organizer, { server, email, password });
    return stage.add(organizer);
  }

  /** Opens another tab of the same browser. */
  async another() {
    const page = await this.context.newPage();
    page.setDefaultTimeout(60_000);
    return Object.assign(new Organizer(this.context, page, this.watch, this.name), { server: this.server });
  }

  /** Opens a page of the console. */
  async go(path) {
    await this.page.goto(`${this.server.url}/console${path}`);
    return this;
  }

  /** Types into fields, by their labels. Sections that are folded are opened. */
  async fill(fields, within = this.page) {
    for (const [label, value] of Object.entries(fields)) {
      const field = within.getByLabel(label, { exact: true });
      await this.unfold(field);
      await field.fill(value);
    }
  }

  /** Opens the sections around an element by their headings. */
  async unfold(element) {
    const folded = element.locator("xpath=ancestor::details[not(@open)]");
    while ((await folded.count()) > 0) await folded.first().locator("> summary").click();
  }

  /** Presses a button. */
  async press(name, within = this.page) {
    await within.getByRole("button", { name, exact: true }).click();
  }

  /** Presses a button that asks first, and confirms. */
  async decide(name, within = this.page) {
    await this.press(name, within);
    await this.press(name, this.page.getByRole("dialog"));
  }

  /** Waits for a page's notice about the latest action. */
  async told(text) {
    await this.page.locator(".notice[role=status]", { hasText: text }).first().waitFor();
  }

  async heading(name) {
    await this.page.getByRole("heading", { level: 1, name }).waitFor();
  }

  /** Creates the owner's account with the link of the first start. */
  async setUp(organization, name) {
    await this.page.goto(this.server.setup);
    await this.heading("Set up Proofline");
    await this.page.getByLabel("Name of your organization").waitFor();
    await this.fill({
      "Name of your organization": organization,
      "E-mail address": this.email,
      "Your name": name,
      Password: this.password,
    });
    await this.press("Create the account");
    await this.heading("Rooms");
  }

  /** Creates an account with the link of an invitation. */
  async join(link, name) {
    await this.page.goto(link);
    await this.page.getByLabel("Your name").waitFor();
    await this.fill({ "Your name": name, Password: this.password });
    await this.press("Create the account");
    await this.heading("Rooms");
  }

  /** Turns the second factor on, checks the page that shows its secret, and returns the recovery codes. */
  async enrol(look = async () => {}) {
    await this.go("/account/second-factor");
    await this.press("Set it up");
    await this.page.locator("#secret").waitFor();
    await look();
    this.authenticator = new Authenticator(await this.page.locator("#secret").textContent());
    await this.fill({ Code: await this.authenticator.code() });
    await this.press("Turn it on");
    await this.heading("Recovery codes");
    return this.page.locator("#codes li").allTextContents();
  }

  /** Signs in, with a text for the code of the second factor. */
  async signIn(code = () => this.authenticator.code()) {
    await this.go("/sign-in");
    await this.fill({ "E-mail address": this.email, Password: this.password });
    await this.press("Sign in");
    if (this.authenticator) {
      await this.heading("Second factor");
      await this.fill({ Code: await code() });
      await this.press("Sign in");
    }
    await this.heading("Rooms");
  }

  async signOut() {
    await this.page.locator(".who summary").click();
    await this.press("Sign out");
    await this.told("You are signed out.");
  }

  /** Confirms the identity if a page asks for it. */
  async confirm() {
    const link = this.page.getByRole("link", { name: "Confirm that it is you" });
    if ((await link.count()) === 0) return;
    await link.click();
    await this.fill({ Password: this.password });
    await this.press("Confirm");
  }

  /** Invites a person; returns the link. */
  async invite(email, role) {
    await this.go("/organization");
    await this.confirm();
    const form = this.page.locator('form[action="/console/organization/invitations"]');
    await this.fill({ "E-mail address": email }, form);
    await form.getByLabel("Role").selectOption(role);
    await this.press("Invite", form);
    await this.heading(`Invitation for ${email}`);
    return (await this.page.locator("#link").textContent()).trim();
  }

  /** Takes a picture of the visible part of the page, for the documentation. */
  async view(name) {
    await this.page.screenshot({ path: `${screenshots}/view-${name}.png`, animations: "disabled" });
  }

  /** The figures of the dashboard, as numbers. */
  async figures() {
    const figures = await this.page
      .locator("[data-figure]")
      .evaluateAll((all) =>
        Object.fromEntries(
          all.map((one) => [
            one.dataset.figure,
            one.dataset.as === "number" ? Number(one.textContent.replaceAll(/\D/g, "")) : one.textContent,
          ]),
        ),
      );
    return { ...figures, phase: await this.page.locator("h1 [data-phase]").getAttribute("data-phase") };
  }

  /** Fails unless a list has a text. */
  async lists(texts, what) {
    const found = await this.page.locator("main").innerText();
    for (const text of texts) assert.ok(found.includes(text), `${what}: no ${text} in\n${found}`);
  }
}
