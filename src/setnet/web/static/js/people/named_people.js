// The saved people as a grid of faces.

import { active, h, plural } from "../dom.js";
import { coverOf } from "../face_picture.js";

export class NamedPeople {
  constructor() {
    this.list = h("ul", { class: "named" });
    this.element = h("section", { class: "people-part", "aria-label": "Named people", hidden: true }, this.list);
  }

  draw(people) {
    this.element.hidden = !people.length;
    const focused = active()?.closest(".named-person")?.getAttribute("data-person");
    this.list.replaceChildren(
      ...people.map((person) =>
        h(
          "li",
          {},
          h(
            "a",
            { class: "named-person", href: `#people/${person.id}`, "data-person": person.id },
            coverOf(person),
            h("b", {}, person.name),
            h("span", { class: "muted small" }, plural(person.photos, "photo")),
          ),
        ),
      ),
    );
    if (focused) this.list.querySelector(`[data-person="${focused}"]`)?.focus();
  }
}
