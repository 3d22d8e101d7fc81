// The people of the query as cards, and the saved people as chips.

import { api, urls } from "./api.js";
import { answered } from "./dialogs.js";
import { h, icon, iconButton, toast } from "./dom.js";
import { faceOf, round } from "./face_picture.js";
import { chooseFiles } from "./picker.js";
import { addPerson, changed, examplesOf, label, query, removePerson } from "./query.js";

export class PeopleBar {
  constructor() {
    this.saved = [];
    this.cards = h("div", { class: "drop", id: "drop", role: "group", "aria-label": "People of the query" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Saved people" });
  }

  async load() {
    this.saved = (await api.people()).people;
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.closest?.("[data-person]")?.dataset.person;
    const selector = document.activeElement?.dataset?.tool;
    this.cards.classList.toggle("is-empty", query.people.length === 0);
    this.cards.replaceChildren(...query.people.map((person) => this.card(person)), this.adder());
    if (focused && selector) this.cards.querySelector(`[data-person="${focused}"] [data-tool="${selector}"]`)?.focus();
    const used = new Set(query.people.map((person) => person.saved));
    this.chips.hidden = this.saved.length === 0;
    this.chips.replaceChildren(...this.saved.map((saved) => this.chip(saved, used.has(saved.name))));
  }

  adder() {
    const first = query.people.length === 0;
    return h("button", { type: "button", class: "add", id: "add-photos", onclick: () => chooseFiles() }, icon("photo"),
      h("b", {}, first ? "Drop, paste or pick photos" : "Add someone"),
      h("span", {}, first ? "of the people you look for; then click their faces" : "drop or pick a photo"));
  }

  card(person) {
    const number = person.examples.length;
    const fresh = number > 0;
    const face = faceOf(person, matchMedia("(max-width: 640px)").matches ? 68 : 76);
    if (number > 1) face.append(h("span", { class: "count" }, `${number} faces`));
    const name = h("input", { type: "text", class: "name", value: person.name || person.saved || "", placeholder: label(person), maxlength: 200,
      "aria-label": `Name of ${label(person)}`, autocomplete: "off", "data-tool": "name",
      onchange: () => { person.name = name.value.trim(); changed("names"); } });
    return h("div", { class: `person ${person.without ? "is-without" : ""}`, "data-person": person.key, role: "group", "aria-label": label(person) },
      person.without && h("span", { class: "role" }, "without"),
      face, name,
      h("div", { class: "tools" },
        iconButton("plus", `Add another photo of ${label(person)}`, () => chooseFiles(person), { "data-tool": "more" }),
        iconButton("ban", `Photos without ${label(person)}`, () => { person.without = !person.without; changed(); }, { "aria-pressed": String(person.without), "data-tool": "without" }),
        fresh && iconButton("save", `Save ${label(person)} in the library`, () => this.keep(person), { "data-tool": "save" }),
        iconButton("close", `Remove ${label(person)} from the query`, () => removePerson(person), { class: "icon-button remove", "data-tool": "remove" })));
  }

  chip(saved, used) {
    const toggle = () => {
      const there = query.people.find((person) => person.saved === saved.name);
      try { if (there) removePerson(there); else addPerson({ saved: saved.name, pictured: saved.has_picture }); } catch (error) { toast(error.message, "error"); }
    };
    return h("button", { type: "button", class: "chip", "aria-pressed": String(used), onclick: toggle },
      round(saved.has_picture ? urls.person(saved) : null, saved.name), saved.name);
  }

  async keep(person) {
    const name = person.name || person.saved || (await answered({ title: "Save this person", label: "Name", action: "Save" }));
    if (!name) return;
    try {
      const saved = await api.save({ name, ...examplesOf(person) });
      Object.assign(person, { name: saved.name, saved: saved.name, pictured: saved.has_picture, examples: [] });
      toast(`${saved.name} is saved with ${saved.examples} example face${saved.examples === 1 ? "" : "s"}.`);
      await this.load();
      changed();
    } catch (error) { toast(error.message, "error"); }
  }
}
