// What can be done with a person of the query: another example, photos without them, a name, keeping them in the library.

import { api } from "../api.js";
import { h, icon, plural } from "../dom.js";
import { faceOf } from "../face_picture.js";
import { askForName, renamed, savedAsking } from "../naming.js";
import { popup } from "../popup.js";
import { toast, undoable } from "../toasts.js";
import { withUploads } from "../uploads.js";
import { chooseFiles } from "./picker.js";
import { changed, examplesOf, label, query, uploadsOf } from "./query.js";

export class PersonMenu {
  // reload(): the saved people changed.
  constructor({ reload }) {
    this.reload = reload;
  }

  open(person, anchor) {
    const name = h("input", {
      type: "text",
      class: "name",
      value: person.name || person.saved?.name || "",
      placeholder: label(person),
      maxlength: 200,
      "aria-label": `Name of ${label(person)}`,
      autocomplete: "off",
      enterkeyhint: "done",
      "data-writes": Boolean(person.saved),
      onchange: () => this.rename(person, name.value.trim()),
      onkeydown: (event) => {
        if (event.key === "Enter") {
          name.blur();
          close();
        }
      },
    });
    const act = (picture, text, call, more = {}) =>
      h(
        "button",
        {
          type: "button",
          class: "menu-item",
          onclick: () => {
            close();
            call();
          },
          ...more,
        },
        icon(picture),
        text,
      );
    const canSave = person.examples.length > 0 || person.group;
    const close = popup(
      anchor,
      label(person),
      [
        h(
          "div",
          { class: "menu-head" },
          faceOf(person, 56),
          h(
            "div",
            {},
            name,
            person.examples.length > 1 &&
              h("p", { class: "muted small" }, plural(person.examples.length, "example face")),
          ),
        ),
        act("plus", "Add another photo", () => chooseFiles(person), {
          "aria-label": `Add another photo of ${label(person)}`,
          autofocus: true,
        }),
        act(
          "ban",
          person.without ? "Photos with them" : "Photos without them",
          () => {
            person.without = !person.without;
            changed();
          },
          { "aria-label": `Photos ${person.without ? "with" : "without"} ${label(person)}` },
        ),
        canSave &&
          act("save", person.saved ? "Keep the new examples" : "Keep in the library", () => this.keep(person), {
            "aria-label": `Save ${label(person)} in the library`,
            "data-writes": true,
          }),
        person.saved &&
          h(
            "a",
            { class: "menu-item", href: `#people/${person.saved.id}`, onclick: () => close() },
            icon("people"),
            "Their page",
          ),
      ].filter(Boolean),
    );
  }

  // The name of a saved person is changed in the library, that of another only in this query.
  async rename(person, name) {
    if (!person.saved) {
      person.name = name;
      changed("names");
      return;
    }
    if (name && name !== person.saved.name)
      person.saved = (await renamed(person.saved, name, () => this.reload())) ?? person.saved;
    await this.reload();
  }

  async keep(person) {
    const name =
      person.saved?.name ||
      person.name ||
      (await askForName({ title: "Keep this person", action: "Save", face: faceOf(person, 76) }));
    if (!name) return;
    const save = (as, if_exists) =>
      person.group && !person.examples.length
        ? api.nameGroup(person.group.id, { name: as, if_exists })
        : withUploads(uploadsOf([person]), () => api.save({ name: as, if_exists, ...examplesOf(person) }));
    const before = { people: [...query.people], card: { ...person } };
    const back = async () => {
      Object.assign(person, before.card);
      query.people = before.people;
      await this.reload();
    };
    try {
      const kept = await savedAsking(save, name, () => faceOf(person, 76));
      if (!kept) return;
      Object.assign(person, { name: "", saved: kept, group: null, examples: [] });
      query.people = query.people.filter((other) => other.saved?.id !== kept.id || other === person);
      undoable(`${kept.name} is saved with ${plural(kept.examples, "example face")}.`, kept.change, back);
      await this.reload();
      changed();
    } catch (error) {
      toast(error.message, "error");
    }
  }
}
