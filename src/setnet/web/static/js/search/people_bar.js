// The people of the query as cards, and the saved people as chips.

import { api } from "../api.js";
import { h, icon, iconButton, plural } from "../dom.js";
import { coverOf, faceOf } from "../face_picture.js";
import { askForName, renamed, savedAsking } from "../naming.js";
import { loadSaved, saved } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";
import { chooseFiles } from "./picker.js";
import { addPerson, adopt, changed, examplesOf, label, query, removePerson } from "./query.js";

export class PeopleBar {
  constructor() {
    this.cards = h("div", { class: "drop", id: "drop", role: "group", "aria-label": "People of the query" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Saved people" });
  }

  async load() {
    await loadSaved();
    this.redraw();
  }

  redraw() {
    adopt(saved.people);
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.closest?.("[data-person]")?.dataset.person;
    const selector = document.activeElement?.dataset?.tool;
    this.cards.classList.toggle("is-empty", query.people.length === 0);
    this.cards.replaceChildren(...query.people.map((person) => this.card(person)), this.adder());
    if (focused && selector) this.cards.querySelector(`[data-person="${focused}"] [data-tool="${selector}"]`)?.focus();
    const used = new Set(query.people.map((person) => person.saved?.id));
    this.chips.hidden = saved.people.length === 0;
    this.chips.replaceChildren(...saved.people.map((person) => this.chip(person, used.has(person.id))));
  }

  adder() {
    const first = query.people.length === 0;
    return h("button", { type: "button", class: "add", id: "add-photos", onclick: () => chooseFiles() }, icon("photo"),
      h("b", {}, first ? "Drop, paste or pick photos" : "Add someone"),
      h("span", {}, first ? "of the people you look for; then click their faces" : "drop or pick a photo"));
  }

  card(person) {
    const number = person.examples.length;
    const canSave = number > 0 || person.group;
    const face = faceOf(person, matchMedia("(max-width: 640px)").matches ? 68 : 76);
    if (number > 1) face.append(h("span", { class: "count" }, `${number} faces`));
    const name = h("input", { type: "text", class: "name", value: person.name || person.saved?.name || "", placeholder: label(person), maxlength: 200,
      "aria-label": `Name of ${label(person)}`, autocomplete: "off", "data-tool": "name",
      onchange: () => this.rename(person, name) });
    return h("div", { class: `person ${person.without ? "is-without" : ""}`, "data-person": person.key, role: "group", "aria-label": label(person) },
      person.without && h("span", { class: "role" }, "without"),
      face, name,
      h("div", { class: "tools" },
        iconButton("plus", `Add another photo of ${label(person)}`, () => chooseFiles(person), { "data-tool": "more" }),
        iconButton("ban", `Photos without ${label(person)}`, () => { person.without = !person.without; changed(); }, { "aria-pressed": String(person.without), "data-tool": "without" }),
        canSave && iconButton("save", `Save ${label(person)} in the library`, () => this.keep(person), { "data-tool": "save" }),
        iconButton("close", `Remove ${label(person)} from the query`, () => removePerson(person), { class: "icon-button remove", "data-tool": "remove" })));
  }

  chip(person, used) {
    const toggle = () => {
      const there = query.people.find((other) => other.saved?.id === person.id);
      try { if (there) removePerson(there); else addPerson({ saved: person }); } catch (error) { toast(error.message, "error"); }
    };
    return h("button", { type: "button", class: "chip", "aria-pressed": String(used), onclick: toggle }, coverOf(person), person.name);
  }

  // The name of a saved person is changed in the library, that of another only in this query.
  async rename(person, field) {
    const name = field.value.trim();
    if (!person.saved) { person.name = name; changed("names"); return; }
    if (name && name !== person.saved.name) person.saved = (await renamed(person.saved, name, () => this.reload())) ?? person.saved;
    await this.reload();
  }

  async reload() {
    await this.load();
    changed("names");
  }

  async keep(person) {
    const name = person.saved?.name || person.name || (await askForName({ title: "Save this person", action: "Save", face: faceOf(person, 76) }));
    if (!name) return;
    const save = (if_exists) => (person.group && !person.examples.length
      ? api.nameGroup(person.group.id, { name, if_exists })
      : api.save({ name, if_exists, ...examplesOf(person) }));
    const before = { people: [...query.people], card: { ...person } };
    const back = async () => { Object.assign(person, before.card); query.people = before.people; await this.reload(); };
    try {
      const kept = await savedAsking(save, name, () => faceOf(person, 76));
      if (!kept) { this.cards.querySelector(`[data-person="${person.key}"] .name`)?.focus(); return; }
      Object.assign(person, { name: "", saved: kept, group: null, examples: [] });
      query.people = query.people.filter((other) => other.saved?.id !== kept.id || other === person);
      undoable(`${kept.name} is saved with ${plural(kept.examples, "example face")}.`, kept.change, back);
      await this.load();
      changed();
    } catch (error) { toast(error.message, "error"); }
  }
}
