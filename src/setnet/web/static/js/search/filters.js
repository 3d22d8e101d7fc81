// The conditions of a search.

import { h, icon } from "../dom.js";
import { changed, query, wanted } from "./query.js";

const KINDS = { any: "Both", photo: "Photos", video: "Videos" };
const MODES = { exact: "Exact", fast: "Fast", set: "Set" };

export class Filters {
  constructor() {
    this.active = h("span", { class: "active" });
    this.grid = h("div", { class: "filter-grid" });
    this.element = h("details", { class: "filters", open: !matchMedia("(max-width: 640px)").matches },
      h("summary", {}, icon("filter"), "Filters", this.active, h("span", { class: "turn" }, icon("down"))), this.grid);
    this.resetter = h("button", { type: "button", class: "button quiet compact", id: "reset-filters", onclick: () => this.reset() }, "Reset");
    this.folders = [];
    this.modes = ["exact"];
    this.build();
  }

  configure({ folders, modes }) {
    if (folders.join("\n") === this.folders.join("\n") && modes.join() === this.modes.join()) return;
    this.folders = folders;
    this.modes = modes;
    this.build();
  }

  set(name, value) {
    query.filters[name] = value;
    changed();
  }

  build() {
    const f = query.filters;
    this.atLeast = h("input", { type: "number", id: "at-least", min: 1, max: 16, value: f.atLeast, "aria-label": "At least this many of the people",
      oninput: (e) => { if (e.target.value) this.set("atLeast", Number(e.target.value)); } });
    const date = (name, label) => h("input", { type: "date", "aria-label": label, value: f[name], onchange: (e) => this.set(name, e.target.value) });
    const count = (name, label, placeholder) => h("input", { type: "number", min: 0, max: 1000, value: f[name], "aria-label": label, placeholder,
      oninput: (e) => this.set(name, e.target.value) });
    const check = (name, text) => h("label", { class: "check" }, h("input", { type: "checkbox", id: name, checked: f[name], onchange: (e) => this.set(name, e.target.checked) }), text);
    this.grid.replaceChildren(
      this.segments("need", "Photos with", { any: "Any", some: "At least", all: "All" }, (value) => this.set("need", value), this.atLeast),
      h("fieldset", { class: "field" }, h("legend", {}, "Matches"), h("div", { class: "row" }, check("sure", "Sure only"), check("only", "Only these people"))),
      h("fieldset", { class: "field" }, h("legend", {}, "Taken"), h("div", { class: "row" }, date("after", "Taken from"), h("span", {}, "to"), date("before", "Taken until"))),
      h("fieldset", { class: "field" }, h("legend", {}, "Faces in the photo"), h("div", { class: "row" }, count("minFaces", "At least this many faces", "any"), h("span", {}, "to"), count("maxFaces", "At most this many faces", "any"))),
      this.folderField(),
      this.segments("kind", "Show", KINDS, (value) => this.set("kind", value)),
      this.segments("mode", "Search", Object.fromEntries(this.modes.map((mode) => [mode, MODES[mode]])), (value) => this.set("mode", value)),
      this.resetter);
    this.draw();
  }

  segments(name, legend, options, choose, extra = null) {
    return h("fieldset", { class: "field" }, h("legend", {}, legend), h("div", { class: "row" },
      h("div", { class: "segments" }, Object.entries(options).map(([value, text]) => h("label", {},
        h("input", { type: "radio", name, value, checked: query.filters[name] === value, onchange: () => choose(value) }), text))), extra));
  }

  folderField() {
    const list = h("datalist", { id: "known-folders" }, this.folders.map((folder) => h("option", { value: folder })));
    return h("div", { class: "field" }, h("label", { for: "folder" }, "Folder"),
      h("input", { type: "text", id: "folder", list: "known-folders", placeholder: "anywhere", value: query.filters.folder, autocomplete: "off",
        onchange: (e) => this.set("folder", e.target.value.trim()) }), list);
  }

  reset() {
    Object.assign(query.filters, { need: "any", atLeast: 2, only: false, after: "", before: "", folder: "", minFaces: "", maxFaces: "", mode: "exact", sure: false, kind: "any" });
    this.build();
    changed();
  }

  draw() {
    const f = query.filters;
    this.atLeast.hidden = f.need !== "some";
    this.atLeast.max = Math.max(1, wanted().length);
    const active = [];
    if (f.need === "all") active.push("all of them");
    if (f.need === "some") active.push(`at least ${f.atLeast}`);
    if (f.sure) active.push("sure only");
    if (f.only) active.push("only these people");
    if (f.after || f.before) active.push(`taken ${f.after || "…"} to ${f.before || "…"}`);
    if (f.minFaces || f.maxFaces) active.push(`${f.minFaces || 0} to ${f.maxFaces || "∞"} faces`);
    if (f.folder) active.push(f.folder);
    if (f.kind !== "any") active.push(`${KINDS[f.kind].toLowerCase()} only`);
    if (f.mode !== "exact") active.push(MODES[f.mode].toLowerCase());
    this.resetter.hidden = active.length === 0;
    this.active.textContent = active.length ? `· ${active.join(" · ")}` : "";
  }
}
