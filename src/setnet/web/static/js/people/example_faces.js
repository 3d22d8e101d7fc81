// The faces by which a person is recognised: where each came from; chosen ones are removed, moved or split off.

import { api, urls } from "../api.js";
import { h, icon, plural } from "../dom.js";
import { faceImage } from "../face_picture.js";
import { askForName } from "../naming.js";
import { called } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";

const ORIGINS = { portrait: "Portrait", confirmed: "Confirmed by you", group: "From a group", import: "Imported" };
const fileOf = (path) => path?.split(/[\\/]/).at(-1);

export class ExampleFaces {
  constructor({ changed }) {
    this.changed = changed;
    this.chosen = new Set();
    this.list = h("ul", { class: "examples" });
    this.status = h("p", { class: "muted", role: "status" });
    const act = (text, call, kind = "") =>
      h("button", { type: "button", class: `button compact ${kind}`, onclick: call }, text);
    this.cover = act("Use as cover", () => this.useAsCover());
    this.acts = [
      this.cover,
      act("Move to…", () => this.move()),
      act("Make a new person…", () => this.split()),
      act("Remove", () => this.remove(), "danger"),
    ];
    this.element = h(
      "div",
      {},
      h("div", { class: "example-bar", "data-writes": true }, this.status, h("div", { class: "acts" }, this.acts)),
      this.list,
    );
  }

  draw(person, examples) {
    this.person = person;
    this.examples = examples;
    const numbers = new Set(examples.map((example) => example.number));
    for (const number of this.chosen) if (!numbers.has(number)) this.chosen.delete(number);
    const cover = person.cover ?? examples.find((example) => example.has_picture)?.number;
    this.list.replaceChildren(...examples.map((example, place) => this.tile(example, place, example.number === cover)));
    this.update();
  }

  tile(example, place, isCover) {
    const words = [ORIGINS[example.origin], fileOf(example.source)].filter(Boolean);
    const button = h(
      "button",
      {
        type: "button",
        class: "member",
        "aria-pressed": String(this.chosen.has(example.number)),
        "aria-label": [`Example ${place + 1}`, ...words, isCover && "the cover"].filter(Boolean).join(", "),
        title: example.source,
        onclick: () => this.toggle(example, button),
      },
      faceImage(example.has_picture ? urls.example(this.person.id, example.number) : null, this.person.name),
      h("span", { class: "mark" }, icon("check")),
      isCover && h("span", { class: "badge" }, "Cover"),
    );
    return h(
      "li",
      {},
      button,
      words.map((text, line) => h("span", { class: line ? "source" : "origin" }, text)),
    );
  }

  toggle(example, button) {
    if (!this.chosen.delete(example.number)) this.chosen.add(example.number);
    button.setAttribute("aria-pressed", String(this.chosen.has(example.number)));
    this.update();
  }

  update() {
    const count = this.chosen.size;
    this.status.textContent = count
      ? `${plural(count, "face")} selected`
      : `${this.person.name} is recognised by these faces. Select those that are wrong.`;
    for (const button of this.acts) button.disabled = count === 0;
    const [only] = this.chosen;
    this.cover.disabled = count !== 1 || !this.examples.find((example) => example.number === only)?.has_picture;
  }

  async store(text, call) {
    try {
      const { change } = await call([...this.chosen]);
      this.chosen.clear();
      undoable(text, change, this.changed);
    } catch (error) {
      toast(error.message, "error");
    }
    await this.changed();
  }

  useAsCover() {
    return this.store("This is the cover now.", ([cover]) => api.edit(this.person.id, { cover }));
  }

  async move() {
    const name = await askForName({
      title: `${plural(this.chosen.size, "face")} of…`,
      action: "Move",
      except: this.person.id,
    });
    const to = name && called(name);
    if (!name) return;
    if (!to || to.id === this.person.id) {
      toast(`Nobody else saved is called ${name}.`, "error");
      return;
    }
    await this.store(`Moved to ${to.name}.`, (chosen) => api.moveExamples(this.person.id, chosen, to.id));
  }

  async split() {
    const name = await askForName({ title: "Who is it?", action: "Save" });
    if (!name) return;
    const to = called(name);
    if (to && to.id !== this.person.id)
      await this.store(`Moved to ${to.name}.`, (chosen) => api.moveExamples(this.person.id, chosen, to.id));
    else await this.store(`${name} is a person of their own now.`, (chosen) => api.split(this.person.id, chosen, name));
  }

  remove() {
    const text = `${plural(this.chosen.size, "example face")} removed.`;
    return this.store(text, (chosen) => api.removeExamples(this.person.id, chosen));
  }
}
