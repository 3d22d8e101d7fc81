// The saved people as a grid of faces, to be found by name; several that are selected are searched for together.

import { active, h, icon, iconButton, plural } from "../dom.js";
import { coverOf } from "../face_picture.js";
import { inWords } from "../gallery/matches.js";
import { namedLike, saved } from "../saved_people.js";
import { MOST_PEOPLE } from "../search/query.js";

const FEW = 12; // people that are found without typing

export class NamedPeople {
  // find(...people): looks for photos with them.
  constructor({ find }) {
    this.selected = new Set(); // ids
    this.list = h("ul", { class: "named" });
    this.filter = h("input", {
      type: "text",
      placeholder: "Find by name",
      "aria-label": "Find by name",
      autocomplete: "off",
      oninput: () => this.draw(),
    });
    const search = () =>
      find(...saved.people.filter((person) => this.selected.has(person.id)).map((one) => ({ saved: one })));
    this.together = h("button", { type: "button", class: "button primary", onclick: search });
    this.bar = h("div", { class: "named-bar" }, this.filter, this.together);
    this.element = h(
      "section",
      { class: "people-part", "aria-label": "Named people", hidden: true },
      this.bar,
      this.list,
    );
  }

  draw() {
    const { people } = saved;
    for (const id of this.selected) if (!people.some((person) => person.id === id)) this.selected.delete(id);
    this.element.hidden = !people.length;
    this.filter.hidden = people.length <= FEW;
    const focused = active()?.closest(".named-person, .named .choose")?.getAttribute("data-person");
    const kind = active()?.classList.contains("choose") ? ".choose" : ".named-person";
    const wanted = this.filter.value.trim() ? namedLike(this.filter.value) : people;
    this.list.replaceChildren(...wanted.map((person) => this.tile(person)));
    if (focused) this.list.querySelector(`${kind}[data-person="${focused}"]`)?.focus();
    const count = this.selected.size;
    this.bar.hidden = this.filter.hidden && !count;
    this.together.hidden = !count;
    this.together.disabled = count > MOST_PEOPLE;
    this.together.replaceChildren(
      icon("search"),
      count > MOST_PEOPLE
        ? `At most ${MOST_PEOPLE} at once`
        : count === 1
          ? "Photos with this person"
          : `Photos with these ${inWords(count)}`,
    );
    this.element.classList.toggle("is-selecting", count > 0);
  }

  tile(person) {
    const isOn = this.selected.has(person.id);
    const turn = () => {
      if (!this.selected.delete(person.id)) this.selected.add(person.id);
      this.draw();
    };
    return h(
      "li",
      {},
      h(
        "a",
        { class: "named-person", href: `#people/${person.id}`, "data-person": person.id },
        coverOf(person),
        h("b", {}, person.name),
        h("span", { class: "muted small" }, plural(person.photos, "photo")),
      ),
      iconButton("check", `Select ${person.name}`, turn, {
        class: "choose",
        "aria-pressed": String(isOn),
        "data-person": person.id,
      }),
    );
  }
}
