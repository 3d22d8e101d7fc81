// The saved people as a grid of faces. Whoever has no group yet is searched for when they come into sight.

import { api } from "../api.js";
import { h, plural } from "../dom.js";
import { coverOf } from "../face_picture.js";

export class NamedPeople {
  constructor() {
    this.list = h("ul", { class: "named" });
    this.element = h("section", { class: "people-part", "aria-label": "Named people", hidden: true }, this.list);
    this.counts = new Map(); // id -> what was last known, shown until it is asked for again
    this.watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) { this.watcher.unobserve(target); this.count(target); }
    }, { rootMargin: "200px" });
  }

  draw(people) {
    this.element.hidden = !people.length;
    this.watcher.disconnect();
    const focused = document.activeElement?.closest?.(".named-person")?.dataset.person;
    this.list.replaceChildren(...people.map((person) => this.tile(person)));
    if (focused) this.list.querySelector(`[data-person="${focused}"]`)?.focus();
  }

  tile(person) {
    const tile = h("a", { class: "named-person", href: `#people/${person.id}`, "data-person": person.id },
      coverOf(person), h("b", {}, person.name), h("span", { class: "muted small" }, person.photos ? plural(person.photos, "photo") : this.counts.get(person.id) ?? "\u00a0"));
    if (!person.photos) this.watcher.observe(tile);
    return h("li", {}, tile);
  }

  async count(tile) {
    const { person } = tile.dataset;
    const { total } = await api.photosOf(person, 1).catch(() => ({ total: null }));
    if (total === null) return;
    this.counts.set(person, plural(total, "photo"));
    tile.lastChild.textContent = this.counts.get(person);
  }
}
