// The conditions of a search as pills: some are on or off, others open a small panel.

import { active, h, icon } from "../dom.js";
import { popup } from "../popup.js";
import { changed, DEFAULTS, query, wanted } from "./query.js";

const KINDS = { any: "Photos and videos", photo: "Photos only", video: "Videos only" };
const METHODS = {
  exact: "Every face compared (exact)",
  fast: "Likely faces only (fast)",
  set: "One vector per photo (set)",
};
const SHORT = { exact: "", fast: "fast search", set: "set vectors" };

const day = (text) => new Date(`${text}T00:00:00Z`).toLocaleDateString([], { dateStyle: "medium", timeZone: "UTC" });

export class Filters {
  constructor() {
    this.folders = [];
    this.modes = ["exact"];
    this.timing = "";
    this.years = [];
    this.pills = {
      need: this.panel("need", "How many of them", () => [
        this.choices("need", { any: "Any of them", some: "At least", all: "All of them" }, { some: this.atLeast() }),
      ]),
      sure: this.toggle("sure", "Sure matches only"),
      only: this.toggle("only", "Nobody else"),
      date: this.panel("date", "When it was taken", () => [
        this.date("after", "Taken from"),
        this.date("before", "Taken until"),
      ]),
      faces: this.panel("faces", "Faces in the photo", () => [
        this.number("minFaces", "At least this many faces"),
        this.number("maxFaces", "At most this many faces"),
      ]),
      order: this.toggle("order", "Newest first", ["best", "newest"]),
      folder: this.panel("folder", "Folder", () => [this.folder()]),
      kind: this.panel("kind", "Photos or videos", () => [this.choices("kind", KINDS)]),
      mode: this.panel("mode", "Advanced", () => [
        h("p", { class: "muted small" }, "How the photos are searched"),
        this.choices("mode", Object.fromEntries(this.modes.map((mode) => [mode, METHODS[mode]]))),
        this.apart(),
        this.timing && h("p", { class: "muted small", id: "timing" }, this.timing),
      ]),
    };
    this.resetter = h(
      "button",
      { type: "button", class: "pill reset", id: "reset-filters", onclick: () => this.reset() },
      "Reset",
    );
    this.chips = h("div", { class: "years", role: "group", "aria-label": "Years" });
    this.element = h(
      "div",
      { class: "filters", role: "group", "aria-label": "Filters" },
      Object.values(this.pills),
      this.resetter,
      this.chips,
    );
    this.draw();
  }

  configure({ folders, modes }, years) {
    this.folders = folders;
    this.modes = modes;
    this.years = years;
  }

  yearChip(year) {
    const [after, before] = [`${year}-01-01`, `${year}-12-31`];
    const isOn = query.filters.after === after && query.filters.before === before;
    const turn = () => {
      Object.assign(query.filters, isOn ? { after: "", before: "" } : { after, before });
      changed();
    };
    return h(
      "button",
      { type: "button", class: "pill", "data-year": year, "aria-pressed": String(isOn), onclick: turn },
      year,
    );
  }

  // The filters that are on, each with what takes it back.
  inForce() {
    const back =
      (...names) =>
      () => {
        for (const name of names) query.filters[name] = DEFAULTS[name];
        changed();
      };
    const names = { date: ["after", "before"], faces: ["minFaces", "maxFaces"], mode: ["mode", "apart"] };
    return Object.entries(this.texts)
      .filter(([name, text]) => text && name !== "mode")
      .map(([name, text]) => ({ text, drop: back(...(names[name] ?? [name])) }));
  }

  set(name, value, field = null) {
    if (query.filters[name] === value) return;
    query.filters[name] = value;
    changed("query", field);
  }

  /** @param {any[]} states what it is while it is off, and while it is on */
  toggle(name, text, states = [false, true]) {
    const [off, on] = states;
    const turn = () => this.set(name, query.filters[name] === on ? off : on);
    return h("button", { type: "button", class: "pill", id: name, onclick: turn }, text);
  }

  panel(name, label, content) {
    return h(
      "button",
      {
        type: "button",
        class: "pill",
        id: `filter-${name}`,
        "aria-haspopup": "dialog",
        "aria-expanded": "false",
        onclick: (event) =>
          popup(event.currentTarget, label, [h("h2", {}, label), ...content().flat().filter(Boolean)]),
      },
      h("span", {}),
      icon("down"),
    );
  }

  // `beside`: what stands beside a choice.
  choices(name, options, beside = {}) {
    return h(
      "div",
      { class: "choices" },
      Object.entries(options).map(([value, text]) =>
        h(
          "div",
          { class: "beside" },
          h(
            "label",
            { class: "check" },
            h("input", {
              type: "radio",
              name,
              value,
              checked: query.filters[name] === value,
              onchange: () => this.set(name, value),
            }),
            text,
          ),
          beside[value],
        ),
      ),
    );
  }

  apart() {
    return h(
      "label",
      { class: "check apart" },
      h("input", {
        type: "checkbox",
        id: "apart",
        checked: query.filters.apart,
        onchange: (event) => this.set("apart", event.target.checked),
      }),
      "Show copies and bursts one by one",
    );
  }

  atLeast() {
    const typed = ({ target }) => {
      if (!target.value) return;
      target.closest(".choices").querySelector("[value=some]").checked = true;
      Object.assign(query.filters, { need: "some", atLeast: Number(target.value) });
      changed("query", target);
    };
    return h("input", {
      type: "number",
      id: "at-least",
      min: 1,
      max: Math.max(1, wanted().length),
      value: query.filters.atLeast,
      "aria-label": "At least this many of the people",
      oninput: typed,
    });
  }

  date(name, label) {
    return h(
      "label",
      { class: "line" },
      label,
      h("input", {
        type: "date",
        "aria-label": label,
        value: query.filters[name],
        onchange: (event) => this.set(name, event.target.value),
      }),
    );
  }

  number(name, label) {
    return h(
      "label",
      { class: "line" },
      label,
      h("input", {
        type: "number",
        min: 0,
        max: 1000,
        placeholder: "any",
        "aria-label": label,
        value: query.filters[name],
        oninput: (event) => this.set(name, event.target.value, event.target),
      }),
    );
  }

  folder() {
    return [
      h("input", {
        type: "text",
        id: "folder",
        list: "known-folders",
        placeholder: "anywhere",
        "aria-label": "Folder",
        value: query.filters.folder,
        autocomplete: "off",
        onchange: (event) => this.set("folder", event.target.value.trim()),
      }),
      h(
        "datalist",
        { id: "known-folders" },
        this.folders.map((folder) => h("option", { value: folder })),
      ),
    ];
  }

  reset() {
    query.filters = { ...DEFAULTS, order: query.filters.order };
    changed();
  }

  // How long the search took is for those who open the advanced panel.
  tell(searched, seconds) {
    this.timing = `${searched.toLocaleString()} searched in ${(seconds * 1000).toFixed(1)} ms.`;
  }

  draw() {
    const f = query.filters;
    const year = f.after.slice(0, 4);
    const isYear = f.after === `${year}-01-01` && f.before === `${year}-12-31`;
    const both = isYear ? year : `${day(f.after)} – ${day(f.before)}`;
    const span =
      f.after && f.before ? both : f.after ? `Since ${day(f.after)}` : f.before ? `Until ${day(f.before)}` : "";
    const faces =
      f.minFaces && f.maxFaces
        ? `${f.minFaces} to ${f.maxFaces} faces`
        : f.minFaces
          ? `${f.minFaces} or more faces`
          : f.maxFaces
            ? `At most ${f.maxFaces} faces`
            : "";
    const advanced = [SHORT[f.mode], f.apart && "one by one"].filter(Boolean).join(", ");
    const several = wanted().length > 1;
    this.texts = {
      need: (several && { all: "All of them", some: `At least ${Math.min(f.atLeast, wanted().length)}` }[f.need]) || "",
      sure: f.sure ? "Sure matches only" : "",
      only: f.only ? "Nobody else" : "",
      date: span,
      faces,
      folder: f.folder.split(/[\\/]/).filter(Boolean).at(-1) ?? "",
      kind: f.kind === "any" ? "" : KINDS[f.kind],
      mode: advanced && `Advanced: ${advanced}`,
    };
    const idle = {
      need: "Any of them",
      date: "Any time",
      faces: "Faces",
      folder: "Folder",
      kind: "Photos and videos",
      mode: "Advanced",
    };
    for (const [name, text] of Object.entries(idle)) {
      this.pills[name].firstChild.textContent = this.texts[name] || text;
      this.pills[name].classList.toggle("is-on", Boolean(this.texts[name]));
    }
    for (const name of ["sure", "only"]) this.pills[name].setAttribute("aria-pressed", String(f[name]));
    this.pills.order.setAttribute("aria-pressed", String(f.order === "newest"));
    // What is about matches has no meaning while nobody is looked for.
    for (const name of ["sure", "only", "order", "mode"]) this.pills[name].hidden = !wanted().length;
    this.pills.need.hidden = !several;
    this.resetter.hidden = Object.entries(DEFAULTS).every(
      ([name, value]) => ["atLeast", "order"].includes(name) || f[name] === value,
    );
    const had = active()?.getAttribute("data-year");
    this.chips.replaceChildren(...this.years.map((one) => this.yearChip(one)));
    if (had) this.chips.querySelector(`[data-year="${had}"]`)?.focus({ preventScroll: true });
  }
}
