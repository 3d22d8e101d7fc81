// A field that offers something while one types: arrows choose, Enter takes, Escape closes.

import { h } from "./dom.js";

let counter = 0;

export class Combobox {
  // offers(text): [{content, take()}]; enter(text): Enter where none of them is chosen; `props` of the field itself.
  constructor({ label, listLabel, offers, enter, props = {} }) {
    counter += 1;
    this.id = `offers-${counter}`;
    this.offers = offers;
    this.enter = enter;
    this.offered = [];
    this.chosen = -1;
    this.input = h("input", {
      type: "text",
      role: "combobox",
      "aria-label": label,
      maxlength: 200,
      autocomplete: "off",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.id,
      oninput: () => this.offer(),
      onkeydown: (event) => this.key(event),
      onblur: () => this.close(),
      ...props,
    });
    this.list = h("ul", { id: this.id, role: "listbox", "aria-label": listLabel, hidden: true });
  }

  get text() {
    return this.input.value.trim();
  }

  offer() {
    this.offered = this.text ? this.offers(this.text) : [];
    const option = ({ content, take }, number) =>
      h(
        "li",
        {
          role: "option",
          id: `${this.id}-${number}`,
          "aria-selected": "false",
          onpointerdown: (event) => {
            event.preventDefault();
            this.close();
            take();
          },
        },
        content,
      );
    this.list.replaceChildren(...this.offered.map(option));
    this.choose(-1);
    this.list.hidden = !this.offered.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
  }

  choose(number) {
    this.chosen = number;
    [...this.list.children].forEach((one, place) => one.setAttribute("aria-selected", String(place === number)));
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
      const { take } = this.offered[this.chosen] ?? {};
      this.close();
      if (take) take();
      else this.enter(this.text);
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
}
