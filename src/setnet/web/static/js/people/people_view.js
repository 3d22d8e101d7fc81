// Everybody in the photos: the named people, whom to ask about, the groups without a name, and what is hidden.

import { api } from "../api.js";
import { isTouch } from "../device.js";
import { h, plural } from "../dom.js";
import { loadSaved } from "../saved_people.js";
import { Disclosure } from "./disclosure.js";
import { GroupActions } from "./group_actions.js";
import { GroupGrid } from "./group_grid.js";
import { hiddenTile, unnamedTile } from "./group_tile.js";
import { NamedPeople } from "./named_people.js";
import { Suggestions } from "./suggestions.js";
import { Ungrouped } from "./ungrouped.js";

export class PeopleView {
  // act: {changed() when people changed, find({group}) to search,}
  constructor(section, act) {
    this.act = act;
    const reload = () => this.reload();
    const left = (id) => this.left(id);
    const groups = new GroupActions({ left, reload, search: act.find });
    const tile = (group) => unnamedTile(group, groups);
    this.named = new NamedPeople({ find: act.find });
    this.suggestions = new Suggestions({ answered: left, reload, open: (group) => groups.open(group) });
    this.unnamed = new GroupGrid({ state: "unnamed", min_faces: 2, limit: 60 }, tile);
    this.single = new Disclosure("Faces seen once", new GroupGrid({ state: "unnamed", max_faces: 1, limit: 60 }, tile));
    this.hidden = new Disclosure(
      "Hidden",
      new GroupGrid({ state: "hidden", limit: 60 }, (group) => hiddenTile(group, groups)),
    );
    this.ungrouped = new Ungrouped();
    this.summary = h("p", { class: "muted" });
    this.empty = h(
      "div",
      { class: "empty", hidden: true },
      h("h2", {}, "Nobody here yet"),
      h(
        "p",
        {},
        "Add a folder of photos: whoever is in them appears here, to be given a name. Nothing leaves this machine.",
      ),
      h("a", { class: "button primary", href: "#index", "data-writes": true }, "Choose a folder"),
    );
    this.who = h(
      "section",
      { class: "people-part", "aria-labelledby": "who-title", hidden: true },
      h(
        "div",
        { class: "part-head" },
        h("h2", { id: "who-title" }, "Who is this?"),
        h(
          "p",
          { class: "muted", "data-writes": true },
          `Each picture stands for one person. Give it a name${isTouch() ? "." : " and press Enter."}`,
        ),
      ),
      this.unnamed.element,
    );
    section.append(
      h("div", { class: "view-head" }, h("h1", { id: "people-title" }, "People"), this.summary),
      this.ungrouped.element,
      this.empty,
      this.named.element,
      this.suggestions.element,
      this.who,
      this.single.element,
      this.hidden.element,
    );
  }

  async show() {
    await Promise.all([this.unnamed.load(), this.single.reload(), this.hidden.reload()]);
    await this.refresh();
  }

  // Nobody is shown who is not saved any more.
  redraw() {
    this.named.draw();
  }

  async reload() {
    await this.show();
    this.act.changed();
  }

  // A group was named or hidden, or, without `id`, refused; nothing that is being typed is lost.
  async left(id = null) {
    if (id) for (const grid of [this.unnamed, this.single.grid, this.hidden.grid]) grid.drop(id);
    await this.refresh();
    this.act.changed();
  }

  async refresh() {
    const people = await loadSaved();
    this.redraw();
    const [all, several] = await Promise.all([
      api.groups({ limit: 1 }),
      api.groups({ min_faces: 2, limit: 1 }),
      this.suggestions.load(),
    ]);
    this.who.hidden = !this.unnamed.size;
    this.ungrouped.draw(all.ungrouped_faces);
    this.summary.textContent = [
      people.length && plural(people.length, "person", "people"),
      several.totals.unnamed && `${several.totals.unnamed.toLocaleString()} without a name`,
    ]
      .filter(Boolean)
      .join(" · ");
    this.empty.hidden = Boolean(people.length || all.totals.unnamed || all.totals.hidden || all.ungrouped_faces);
    await Promise.all([
      this.single.count(all.totals.unnamed - several.totals.unnamed),
      this.hidden.count(all.totals.hidden),
    ]);
  }
}
