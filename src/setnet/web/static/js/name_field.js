// A field for a name that offers the saved people while it is typed: arrows choose, Enter takes, Escape closes.

import { h, iconButton } from "./dom.js";
import { coverOf } from "./face_picture.js";
import { namedLike } from "./saved_people.js";

const MOST = 6;
let counter = 0;

export class NameField {
  // accept(name): what Enter or a click on a saved person does. `except`: an id that is not offered.
  constructor({ label, placeholder, accept, value = "", except = null, up = false, button = false }) {
    counter += 1;
    this.accept = accept;
    this.except = except;
    this.id = `names-${counter}`;
    this.chosen = -1;
    this.input = h("input", {
      type: "text",
      role: "combobox",
      "aria-label": label,
      placeholder,
      value,
      maxlength: 200,
      autocomplete: "off",
      enterkeyhint: "done",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.id,
      oninput: () => this.offer(),
      onkeydown: (event) => this.key(event),
      onblur: () => this.close(),
    });
    this.list = h("ul", { id: this.id, role: "listbox", "aria-label": "Saved people", hidden: true });
    this.element = h(
      "div",
      { class: `name-field ${up ? "up" : ""}` },
      this.input,
      button &&
        iconButton("check", "Save this name", () => this.take(this.value.trim()), { class: "icon-button take" }),
      this.list,
    );
  }

  get value() {
    return this.input.value;
  }
  focus() {
    this.input.focus();
    this.input.select();
  }

  offer() {
    const text = this.value.trim();
    this.offered = text
      ? namedLike(text)
          .filter((person) => person.id !== this.except)
          .slice(0, MOST)
      : [];
    this.list.replaceChildren(
      ...this.offered.map((person, number) =>
        h(
          "li",
          {
            role: "option",
            id: `${this.id}-${number}`,
            "aria-selected": "false",
            onpointerdown: (event) => {
              event.preventDefault();
              this.take(person.name);
            },
          },
          coverOf(person),
          h("span", {}, person.name),
        ),
      ),
    );
    this.choose(-1);
    this.list.hidden = !this.offered.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
  }

  choose(number) {
    this.chosen = number;
    [...this.list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === number)));
    if (number < 0) this.input.removeAttribute("aria-activedescendant");
    else this.input.setAttribute("aria-activedescendant", `${this.id}-${number}`);
  }

  close() {
    this.list.hidden = true;
    this.choose(-1);
    this.input.setAttribute("aria-expanded", "false");
  }

  key(event) {
    const open = !this.list.hidden;
    if (event.isComposing) return; // Enter ends the composition of a character
    if (event.key === "Enter") {
      event.preventDefault();
      this.take(this.chosen >= 0 ? this.offered[this.chosen].name : this.value.trim());
    } else if (open && event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const step = event.key === "ArrowDown" ? 1 : -1;
      this.choose(((this.chosen + 1 + step + this.offered.length + 1) % (this.offered.length + 1)) - 1);
    }
  }

  take(name) {
    this.close();
    if (!name) return;
    this.input.value = name;
    this.accept(name);
  }
}
