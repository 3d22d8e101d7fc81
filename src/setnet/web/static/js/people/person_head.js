// The head of a person's page: cover, names and note, and what can be done with the whole person.

import { api } from "../api.js";
import { decided } from "../dialogs.js";
import { h, icon, plural } from "../dom.js";
import { coverOf } from "../face_picture.js";
import { askForName, merged, mergedIfMeant } from "../naming.js";
import { called, saved } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";

export class PersonHead {
  // changed(): the person changed; moved(id): they are another person now, or nobody; find(person): search for them.
  constructor({ changed, moved, find }) {
    this.changed = changed;
    this.moved = moved;
    this.find = find;
    this.numbers = h("p", { class: "muted" });
    this.element = h("header", { class: "person-head" });
  }

  count(text) {
    this.numbers.textContent = text;
  }

  draw(person) {
    const act = (name, text, call, kind = "") =>
      h(
        "button",
        { type: "button", class: `button compact ${kind}`, "data-writes": name !== "search", onclick: call },
        icon(name),
        text,
      );
    this.element.replaceChildren(
      h("a", { class: "back", href: "#people" }, icon("back"), "People"),
      coverOf(person),
      h(
        "div",
        { class: "about" },
        h("h1", { id: "person-title" }, person.name),
        person.aliases.length > 0 && h("p", { class: "aliases" }, "also ", person.aliases.join(", ")),
        this.numbers,
        person.note && h("p", { class: "note" }, person.note),
      ),
      h(
        "div",
        { class: "acts" },
        act("search", "Find photos", () => this.find(person), "primary"),
        act("pencil", "Edit", () => this.edit(person)),
        saved.people.length > 1 && act("merge", "Merge", () => this.merge(person)),
        act("trash", "Remove", () => this.remove(person), "danger"),
      ),
    );
  }

  async edit(person) {
    const name = h("input", { id: "edit-name", type: "text", value: person.name, maxlength: 200, autocomplete: "off" });
    const aliases = h(
      "textarea",
      { id: "edit-aliases", rows: 3, placeholder: "one per line" },
      person.aliases.join("\n"),
    );
    const note = h("textarea", { id: "edit-note", rows: 3, maxlength: 10000 }, person.note);
    const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);
    const done = await decided({
      title: `Edit ${person.name}`,
      content: [field("Name", name), field("Other names", aliases), field("Note", note)],
      yes: "Save",
      opened: (dialog) => {
        name.focus();
        name.addEventListener("keydown", (event) => {
          if (event.key === "Enter" && !event.isComposing) dialog.close("yes");
        });
      },
    });
    if (!done) return;
    const now = {
      name: name.value.trim(),
      aliases: aliases.value
        .split("\n")
        .map((line) => line.trim())
        .filter(Boolean),
      note: note.value.trim(),
    };
    const other = now.name && called(now.name);
    if (other && other.id !== person.id) {
      await this.become(mergedIfMeant, person, other);
      return;
    }
    const changes = Object.fromEntries(
      Object.entries(now).filter(([key, value]) => String(value) !== String(person[key]) && (key !== "name" || value)),
    );
    if (!Object.keys(changes).length) return;
    try {
      const { change } = await api.edit(person.id, changes);
      undoable(
        changes.name ? `${person.name} is called ${changes.name} now.` : `${person.name} was changed.`,
        change,
        this.changed,
      );
      await this.changed();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async merge(person) {
    const name = await askForName({
      title: `${person.name} is the same person as…`,
      action: "Merge",
      face: coverOf(person),
      except: person.id,
    });
    if (!name) return;
    const into = called(name);
    if (!into || into.id === person.id) {
      toast(`Nobody else saved is called ${name}.`, "error");
      return;
    }
    await this.become(merged, person, into);
  }

  async become(merge, person, into) {
    if (await merge(person, into, () => this.moved(person.id))) this.moved(into.id);
  }

  async remove(person) {
    try {
      const { id } = await api.remove(person.id);
      undoable(
        `${person.name} is removed, with ${plural(person.examples, "example face")} and all you said about them. Photos stay.`,
        id,
        () => this.moved(person.id),
      );
      await this.moved(null);
    } catch (error) {
      toast(error.message, "error");
    }
  }
}
