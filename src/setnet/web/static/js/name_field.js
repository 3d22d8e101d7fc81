// A field for a name that offers the saved people while it is typed.

import { Combobox } from "./combobox.js";
import { h, iconButton } from "./dom.js";
import { coverOf } from "./face_picture.js";
import { namedLike } from "./saved_people.js";

const MOST = 6;

export class NameField {
  // accept(name): what Enter or a click on a saved person does. `except`: an id that is not offered.
  constructor({ label, placeholder, accept, value = "", except = null, up = false, button = false }) {
    this.accept = accept;
    const offers = (text) =>
      namedLike(text)
        .filter((person) => person.id !== except)
        .slice(0, MOST)
        .map((person) => ({
          content: [coverOf(person), h("span", {}, person.name)],
          take: () => this.take(person.name),
        }));
    const props = { placeholder, value, enterkeyhint: "done" };
    const box = new Combobox({ label, listLabel: "Saved people", offers, enter: (name) => this.take(name), props });
    this.input = box.input;
    const save = () => this.take(this.value.trim());
    this.element = h(
      "div",
      { class: `name-field ${up ? "up" : ""}` },
      box.input,
      button && iconButton("check", "Save this name", save, { class: "icon-button take" }),
      box.list,
    );
  }

  get value() {
    return this.input.value;
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  take(name) {
    if (!name) return;
    this.input.value = name;
    this.accept(name);
  }
}
