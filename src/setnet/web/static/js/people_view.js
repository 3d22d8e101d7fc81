// The saved people: find, rename, merge, remove; and forgetting everything.

import { api, urls } from "./api.js";
import { answered, confirmed } from "./dialogs.js";
import { h, iconButton, plural, toast } from "./dom.js";
import { round } from "./face_picture.js";
import { changed, query } from "./query.js";

export class PeopleView {
  constructor(section, { find, forgotten }) {
    this.find = find;
    this.forgotten = forgotten;
    this.list = h("div");
    section.append(
      h("div", { class: "view-head" }, h("h1", { id: "people-title" }, "People"), h("p", { class: "muted" }, "Saved by you, kept on this machine.")),
      this.list,
      h("div", { class: "danger-zone" },
        h("div", {}, h("h2", {}, "Forget everything"), h("p", { class: "muted small" }, "Deletes all faces, people and thumbnails from this machine. Your photos stay as they are.")),
        h("button", { type: "button", class: "button danger", id: "forget-everything", onclick: () => this.forget() }, "Forget everything…")));
  }

  async show() {
    try {
      this.people = (await api.people()).people;
    } catch (error) {
      this.list.replaceChildren(h("p", { class: "notice error", role: "alert" }, error.message));
      return;
    }
    this.list.replaceChildren(this.people.length
      ? h("ul", { class: "cards" }, this.people.map((person) => this.card(person)))
      : h("div", { class: "empty" }, h("h2", {}, "Nobody saved yet"),
        h("p", {}, "Search with a photo of someone, type their name and press the bookmark: next time a click is enough."),
        h("a", { class: "button primary", href: "#search" }, "Search")));
  }

  card(person) {
    return h("li", { class: "card person-card", "data-name": person.name },
      round(person.has_picture ? urls.person(person) : null, person.name),
      h("div", {}, h("p", { class: "name" }, person.name), h("p", { class: "muted small" }, plural(person.examples, "example face"))),
      h("div", { class: "acts" },
        h("button", { type: "button", class: "button compact", onclick: () => this.find(person) }, "Find photos"),
        iconButton("pencil", `Rename ${person.name}`, () => this.rename(person)),
        this.people.length > 1 && iconButton("merge", `Merge ${person.name} with another person`, () => this.merge(person)),
        iconButton("trash", `Remove ${person.name}`, () => this.remove(person))));
  }

  async change(call, text, adapt) {
    try {
      const result = await call();
      toast(text);
      adapt?.(result);
      changed();
    } catch (error) { toast(error.message, "error"); }
    await this.show();
  }

  async rename(person) {
    const name = await answered({ title: `Rename ${person.name}`, label: "New name", action: "Rename", value: person.name });
    if (!name || name === person.name) return;
    await this.change(() => api.rename(person.name, name), `${person.name} is called ${name} now.`, () => this.inQuery(person.name, name));
  }

  async merge(person) {
    const others = this.people.filter((other) => other !== person).map((other) => other.name);
    const into = await answered({ title: `${person.name} is the same person as…`, label: "Their name is kept", action: "Merge", options: others });
    if (!into) return;
    await this.change(() => api.merge(into, [person.name]), `${person.name} and ${into} are one person now.`, () => this.inQuery(person.name, null));
  }

  async remove(person) {
    const sure = await confirmed({ title: `Remove ${person.name}?`, text: `${plural(person.examples, "example face")} will be deleted for good. Photos are not touched.`, action: "Remove", danger: true });
    if (sure) await this.change(() => api.remove(person.name), `${person.name} was removed.`, () => this.inQuery(person.name, null));
  }

  inQuery(old, name) {
    query.people = query.people.filter((person) => person.saved !== old || name);
    for (const person of query.people) if (person.saved === old) { person.saved = name; person.name = ""; }
  }

  async forget() {
    const sure = await confirmed({ title: "Forget everything?", text: "All faces, saved people and thumbnails of this library are deleted from the disk. This cannot be undone. Your photos stay as they are.", action: "Forget everything", danger: true });
    if (!sure) return;
    query.people = [];
    await this.change(() => api.forgetEverything(), "Everything was forgotten.", () => this.forgotten());
  }
}
