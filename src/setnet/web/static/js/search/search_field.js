// The one search field: people as one types, years, folders, "-name" for without; photos are picked, pasted or dropped here.

import { api } from "../api.js";
import { Combobox } from "../combobox.js";
import { isTouch } from "../device.js";
import { h, icon, plural } from "../dom.js";
import { coverOf } from "../face_picture.js";
import { whenKnown } from "../saved_people.js";
import { toast } from "../toasts.js";
import { chooseFiles } from "./picker.js";
import { addPerson, changed, query, removePerson } from "./query.js";
import { completions, understand } from "./typed.js";

const MOST_PEOPLE = 6;
const MOST_OTHERS = 4;

export class SearchField {
  // years(): the years that photos have, the latest first.
  constructor({ years }) {
    this.years = years;
    this.folders = [];
    this.box = new Combobox({
      label: "Search: a name, a year or a folder; -name for without",
      listLabel: "What may be meant",
      offers: (text) => this.offers(text),
      enter: (text) => this.enter(text),
      props: {
        id: "search-field",
        type: "search",
        placeholder: isTouch() ? "Name, year, folder" : "Name, year or folder, -name for without; or drop a photo",
        enterkeyhint: "search",
        "aria-keyshortcuts": "/",
        onfocus: () => this.loadFolders(),
      },
    });
    this.box.input.addEventListener("keydown", (event) => {
      if (event.key === "Backspace" && !this.box.input.value && query.people.length) removePerson(query.people.at(-1));
    });
    const pick = { type: "button", class: "add", id: "add-photos", onclick: () => chooseFiles() };
    this.element = h(
      "div",
      { class: "name-field search-field" },
      icon("search"),
      this.box.input,
      h("button", { ...pick, "aria-label": "Pick a photo of somebody", title: "Pick a photo" }, icon("photo")),
      this.box.list,
    );
    addEventListener("keydown", (event) => this.slash(event));
  }

  // "/" leads here from everywhere but another field.
  slash(event) {
    const { input } = this.box;
    const isTyping = event.target.closest?.("input, textarea, select, dialog");
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey || !input.offsetParent) return;
    event.preventDefault();
    input.focus();
  }

  async loadFolders() {
    try {
      this.folders = (await api.photoFolders()).folders.map((folder) => folder.path);
    } catch {
      this.folders = []; // then no folder is offered
    }
  }

  offers(text) {
    const { people, years, folders, without, before } = completions(text, {
      years: this.years(),
      folders: this.folders,
    });
    const offer = (picture, words, note, take) => ({
      content: [picture, h("span", {}, words), note && h("small", { class: "muted" }, note)],
      take: async () => {
        this.box.input.value = before;
        if (before) await this.enter(before);
        take();
      },
    });
    const sign = (name) => h("span", { class: "face sign" }, icon(name));
    return [
      ...people
        .slice(0, MOST_PEOPLE)
        .map((person) =>
          offer(coverOf(person), `${without ? "without " : ""}${person.name}`, plural(person.photos, "photo"), () =>
            this.add([{ person, without }]),
          ),
        ),
      ...years.slice(0, MOST_OTHERS).map((year) => offer(sign("calendar"), year, "", () => this.narrow({ year }))),
      ...folders
        .slice(0, MOST_OTHERS)
        .map((folder) => offer(sign("folder"), folder.split(/[\\/]/).at(-1), folder, () => this.narrow({ folder }))),
    ];
  }

  // Takes a whole line, as "Anna Ben -Carl 2019"; what is not understood stays in the field.
  async enter(text) {
    await whenKnown();
    const { people, year, folder, rest } = understand(text, this.folders);
    this.add(people);
    this.narrow({ year, folder });
    this.box.input.value = rest.join(" ");
    if (isTouch()) this.box.input.blur(); // its keyboard would cover the photos
    if (rest.length) toast(`Nobody saved, no year and no folder is called “${rest.join(" ")}”.`, "error");
  }

  add(people) {
    for (const { person, without } of people) {
      const known = query.people.find((other) => other.saved?.id === person.id);
      try {
        if (known) known.without = without;
        else addPerson({ saved: person, without });
      } catch (error) {
        toast(error.message, "error");
      }
    }
    if (people.length) changed();
  }

  narrow({ year = null, folder = null }) {
    if (year) Object.assign(query.filters, { after: `${year}-01-01`, before: `${year}-12-31` });
    if (folder) query.filters.folder = folder;
    if (year || folder) changed();
  }
}
