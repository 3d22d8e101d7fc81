// The people of the query as pills, and the saved people beside them.

import { isTouch } from "../device.js";
import { active, h, icon, iconButton } from "../dom.js";
import { coverOf, faceOf } from "../face_picture.js";
import { popup } from "../popup.js";
import { loadSaved, namedLike, saved } from "../saved_people.js";
import { toast } from "../toasts.js";
import { PersonMenu } from "./person_menu.js";
import { chooseFiles } from "./picker.js";
import { addPerson, adopt, changed, label, query, removePerson } from "./query.js";

const MOST_CHIPS = 14;

export class PeopleBar {
  constructor() {
    this.cards = h("div", { class: "asked", role: "group", "aria-label": "People of the query" });
    this.adder = h("button", { type: "button", class: "add", id: "add-photos", onclick: () => chooseFiles() });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Saved people" });
    this.element = h("div", { class: "people-bar", id: "drop" }, this.cards, this.adder, this.chips);
    this.menu = new PersonMenu({ reload: () => this.reload() });
    this.draw();
  }

  async load() {
    await loadSaved();
    this.redraw();
  }

  async reload() {
    await this.load();
    changed("names");
  }

  redraw() {
    adopt(saved.people);
    this.draw();
  }

  draw() {
    const focused = active()?.closest("[data-person]")?.getAttribute("data-person");
    const tool = active()?.dataset?.tool;
    const isEmpty = query.people.length === 0;
    if (this.cards.children.length !== query.people.length) this.element.scrollTo({ left: 0 });
    this.element.classList.toggle("is-empty", isEmpty);
    this.cards.hidden = isEmpty;
    this.cards.replaceChildren(...query.people.map((person) => this.pill(person)));
    this.adder.replaceChildren(
      icon(isEmpty ? "photo" : "plus"),
      isEmpty ? (isTouch() ? "Pick a photo of somebody" : "Drop, paste or pick a photo of somebody") : "Add a photo",
    );
    if (focused && tool) this.cards.querySelector(`[data-person="${focused}"] [data-tool="${tool}"]`)?.focus();
    const used = new Set(query.people.map((person) => person.saved?.id));
    const others = saved.people.filter((person) => !used.has(person.id)).sort((a, b) => b.photos - a.photos);
    this.chips.hidden = others.length === 0;
    this.chips.replaceChildren(
      ...others.slice(0, MOST_CHIPS).map((person) => this.chip(person)),
      ...(others.length > MOST_CHIPS ? [this.everybody()] : []),
    );
  }

  pill(person) {
    const number = person.examples.length;
    const face = faceOf(person, 32);
    const words = [
      person.without && h("span", { class: "role" }, "without"),
      h("span", { class: "called" }, label(person)),
      number > 1 && h("span", { class: "count" }, `${number} faces`),
    ];
    return h(
      "div",
      {
        class: `person ${person.without ? "is-without" : ""}`,
        "data-person": person.key,
        role: "group",
        "aria-label": label(person),
      },
      h(
        "button",
        {
          type: "button",
          class: "who",
          "data-tool": "menu",
          "aria-haspopup": "dialog",
          "aria-expanded": "false",
          "aria-label": `${person.without ? "Without " : ""}${label(person)}: change`,
          onclick: (event) => this.menu.open(person, event.currentTarget),
        },
        face,
        words,
      ),
      iconButton("close", `Remove ${label(person)} from the query`, () => removePerson(person), {
        class: "icon-button remove",
        "data-tool": "remove",
      }),
    );
  }

  chip(person, done = () => {}) {
    const add = () => {
      done();
      try {
        addPerson({ saved: person });
      } catch (error) {
        toast(error.message, "error");
      }
    };
    return h(
      "button",
      { type: "button", class: "chip", "aria-label": `Look for ${person.name}`, onclick: add },
      coverOf(person),
      h("span", {}, person.name),
    );
  }

  // Everybody who is saved, to be found by a few letters.
  everybody() {
    const open = (event) => {
      const list = h("div", { class: "everybody" });
      const field = h("input", {
        type: "text",
        placeholder: "Name",
        "aria-label": "Name of somebody saved",
        autocomplete: "off",
        autofocus: true,
        oninput: () => fill(),
      });
      const fill = () => {
        const used = new Set(query.people.map((person) => person.saved?.id));
        list.replaceChildren(
          ...namedLike(field.value)
            .filter((person) => !used.has(person.id))
            .slice(0, 60)
            .map((person) => this.chip(person, done)),
        );
      };
      let close = () => {}; // known once there is something to show
      const done = () => close();
      fill();
      close = popup(event.currentTarget, "Saved people", [field, list]);
    };
    return h(
      "button",
      { type: "button", class: "chip everyone", "aria-haspopup": "dialog", "aria-expanded": "false", onclick: open },
      "Everybody…",
    );
  }
}
