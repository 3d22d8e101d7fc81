// Searches that are kept under a name: they stay up to date, and tell how many photos are new since they were opened.

import { api } from "../api.js";
import { answered } from "../dialogs.js";
import { h, icon, iconButton } from "../dom.js";
import { listed } from "../gallery/matches.js";
import { called } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";
import { changed, conditions, DEFAULTS, label, needed, newPerson, query, unwanted, wanted } from "./query.js";

const SEEN = "setnet-searches"; // in this browser: name -> how many photos it had when it was opened
const COUNTED = 12; // searches whose photos are counted

const seen = () => JSON.parse(localStorage.getItem(SEEN) ?? "{}");
const names = (people) => people.map((person) => person.saved.id);
const dayBefore = (day) => day && new Date(Date.parse(day) - 864e5).toISOString().slice(0, 10);
const isDay = (text) => !text || /^\d{4}-\d\d-\d\d$/.test(text);

// What the library keeps of a search as the filters of this page.
function filtersOf(search) {
  const { people, at_least, only, sure, newest, after, before, folder, kind } = search;
  const need = at_least < 2 ? "any" : at_least === people.length ? "all" : "some";
  const atLeast = need === "some" ? at_least : DEFAULTS.atLeast;
  const [minFaces, maxFaces] = [search.min_faces, search.max_faces].map((number) => String(number ?? ""));
  const order = newest ? "newest" : "best";
  const days = { after: after ?? "", before: dayBefore(before) ?? "" };
  return {
    ...DEFAULTS,
    ...days,
    need,
    atLeast,
    only,
    sure,
    order,
    folder: folder ?? "",
    kind: kind ?? "any",
    minFaces,
    maxFaces,
  };
}

export class SavedSearches {
  constructor() {
    this.searches = [];
    this.totals = new Map();
    this.element = h("div", { class: "saved-searches", role: "group", "aria-label": "Saved searches", hidden: true });
    const save = { type: "button", class: "pill", id: "save-search", "data-writes": true, onclick: () => this.save() };
    this.button = h("button", save, icon("save"), "Save search");
  }

  async load() {
    ({ searches: this.searches } = await api.searches());
    this.draw();
    for (const search of this.searches.slice(0, COUNTED)) {
      const { after, before, folder, min_faces, max_faces, kind, at_least, only, sure } = search;
      const [people, without] = [search.people, search.without].map((all) => all.map((saved) => ({ saved })));
      const asked = { after, before, folder, min_faces, max_faces, kind, at_least, only, sure, people, without };
      try {
        const { totals } = await api.search({ ...asked, totals: true, limit: 1 });
        this.totals.set(
          search.name,
          totals.reduce((sum, { photos }) => sum + photos, 0),
        );
      } catch {
        this.totals.delete(search.name); // of somebody who was removed
      }
    }
    this.draw();
  }

  draw() {
    this.button.hidden = !wanted().length || !query.people.every((person) => person.saved);
    this.element.hidden = query.people.length > 0 || !this.searches.length;
    if (!this.element.hidden) this.element.replaceChildren(...this.searches.map((search) => this.pill(search)));
  }

  pill(search) {
    const { name } = search;
    const total = this.totals.get(name);
    const more = total - (seen()[name] ?? total);
    const note =
      total === undefined ? "" : more > 0 ? `${total.toLocaleString()}, ${more} new` : total.toLocaleString();
    const open = { type: "button", class: "who", onclick: () => this.open(search) };
    return h(
      "div",
      { class: "saved-search", role: "group", "aria-label": name },
      h("button", open, icon("search"), h("span", {}, name), h("small", { class: "muted" }, note)),
      iconButton("close", `Remove the search ${name}`, () => this.remove(name), {
        class: "icon-button remove",
        "data-writes": true,
      }),
    );
  }

  open(search) {
    const { name, people, without, after, before } = search;
    const gone = [...people, ...without].filter((who) => !called(who));
    if (gone.length || !isDay(after) || !isDay(before)) {
      toast(gone.length ? `${name}: ${listed(gone)}.` : `${name} can be opened by “setnet search” alone.`, "error");
      return;
    }
    this.see(name);
    query.people = [];
    for (const who of people) query.people.push(newPerson({ saved: called(who) }));
    for (const who of without) query.people.push(newPerson({ saved: called(who), without: true }));
    query.filters = filtersOf(search);
    changed();
  }

  see(name) {
    if (this.totals.has(name)) localStorage.setItem(SEEN, JSON.stringify({ ...seen(), [name]: this.totals.get(name) }));
  }

  async save() {
    const { only, sure, order } = query.filters;
    const value = listed(wanted().map(label));
    const name = await answered({ title: "Save this search", label: "Name", action: "Save", value });
    if (!name) return;
    const people = { people: names(wanted()), without: names(unwanted()), at_least: needed() };
    try {
      await api.saveSearch(name, { ...conditions(), ...people, only, sure, newest: order === "newest" });
      toast(`${name} is saved, and stays up to date.`);
      await this.load();
      this.see(name);
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async remove(name) {
    try {
      const { id } = await api.removeSearch(name);
      undoable(`The search ${name} is removed.`, id, () => this.load());
      await this.load();
    } catch (error) {
      toast(error.message, "error");
    }
  }
}
