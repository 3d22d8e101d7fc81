// The people of the query as pills, before the field in which the next one is typed.

import { active, h, iconButton } from "../dom.js";
import { faceOf } from "../face_picture.js";
import { loadSaved, saved } from "../saved_people.js";
import { PersonMenu } from "./person_menu.js";
import { adopt, changed, label, query, removePerson } from "./query.js";

export class PeopleBar {
  // field: the search field; faces: the people to begin a search with.
  constructor({ field, faces }) {
    this.faces = faces;
    this.cards = h("div", { class: "asked", role: "group", "aria-label": "People of the query" });
    this.element = h("div", { class: "people-bar", id: "drop" }, this.cards, field.element);
    this.menu = new PersonMenu({ reload: () => this.reload() });
    this.draw();
  }

  async load() {
    await Promise.all([loadSaved(), this.faces.load()]);
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
    this.cards.hidden = isEmpty;
    this.cards.replaceChildren(
      ...query.people.map((person) => this.pill(person)),
      ...(isEmpty ? [] : [this.faces.plus]),
    );
    if (focused && tool) this.cards.querySelector(`[data-person="${focused}"] [data-tool="${tool}"]`)?.focus();
    this.faces.draw();
  }

  pill(person) {
    const number = person.examples.length;
    const words = [
      person.without && h("span", { class: "role" }, "without"),
      h("span", { class: "called" }, label(person)),
      number > 1 && h("span", { class: "count" }, `${number} faces`),
    ];
    const who = {
      type: "button",
      class: "who",
      "data-tool": "menu",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      "aria-label": `${person.without ? "Without " : ""}${label(person)}: change`,
      onclick: (event) => this.menu.open(person, event.currentTarget),
    };
    const remove = { class: "icon-button remove", "data-tool": "remove" };
    return h(
      "div",
      {
        class: `person ${person.without ? "is-without" : ""}`,
        "data-person": person.key,
        role: "group",
        "aria-label": label(person),
      },
      h("button", who, faceOf(person, 32), words),
      iconButton("close", `Remove ${label(person)} from the query`, () => removePerson(person), remove),
    );
  }
}
