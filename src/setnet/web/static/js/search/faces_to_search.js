// Faces to begin a search with: saved people and frequent groups without a name, in two rows, or all of them in a panel.
// Where one points at faces, a row of them stays for the next one.

import { api, urls } from "../api.js";
import { isNarrow, isTouch } from "../device.js";
import { h, icon, iconButton, plural } from "../dom.js";
import { coverOf, round } from "../face_picture.js";
import { popup } from "../popup.js";
import { namedLike, saved } from "../saved_people.js";
import { toast } from "../toasts.js";
import { addPerson, query } from "./query.js";

const GROUPS = 24; // without a name that are offered
const WIDTH = [88, 73]; // pixels of a face with its name: on a desktop, on a phone
const MOST_SHOWN = 120; // in the panel, until a name is typed

function search(person) {
  try {
    addPerson(person);
  } catch (error) {
    toast(error.message, "error");
  }
}

const isAsked = (person) =>
  query.people.some((other) => person && (other.saved?.id ?? other.group?.id) === (person.saved ?? person.group).id);
const byPhotos = () => [...saved.people].sort((a, b) => b.photos - a.photos).map((one) => ({ saved: one }));

function tile(person, act) {
  const [name, photos] = [person.saved?.name ?? "Name?", (person.saved ?? person.group).photos];
  const face = person.saved ? coverOf(person.saved) : round(person.group.cover && urls.face(person.group.cover));
  const label = `Look for ${person.saved ? name : "this person"}, in ${plural(photos, "photo")}`;
  return h(
    "button",
    { type: "button", class: "face-tile", "aria-label": label, onclick: () => act(person) },
    face,
    h("span", { class: person.saved ? "" : "muted", title: name }, name),
  );
}

// A face, and on it the button for photos without it.
const choice = (person, act, props = {}) =>
  h(
    "div",
    { class: "face-choice" },
    tile(person, act),
    iconButton("ban", `Without ${person.saved?.name ?? "this person"}`, () => act({ ...person, without: true }), props),
  );

export class FacesToSearch {
  constructor() {
    this.groups = [];
    this.element = h("div", {
      class: "faces-to-search",
      role: "group",
      "aria-label": "People to look for",
      hidden: true,
    });
    this.plus = this.opener("pill plus", [icon("plus"), "Person"]);
    new ResizeObserver(() => this.draw()).observe(document.getElementById("main"));
  }

  async load() {
    const { groups } = await api.groups({ state: "unnamed", min_faces: 2, limit: GROUPS });
    const before = JSON.stringify(this.groups);
    this.groups = groups.map((group) => ({ group }));
    if (JSON.stringify(this.groups) !== before) this.draw(); // else the focus would be lost for nothing
  }

  // Saved people first, and a third of the places for groups.
  draw() {
    const isBegun = query.people.length > 0;
    const [named, unnamed] = [byPhotos(), this.groups].map((all) => all.filter((person) => !isAsked(person)));
    this.element.hidden = !(named.length + unnamed.length) || (isBegun && (isNarrow() || isTouch()));
    this.element.classList.toggle("is-begun", isBegun);
    if (this.element.hidden) return;
    const focused = [...this.element.children].findIndex((one) => one.contains(document.activeElement));
    const room = document.getElementById("main").clientWidth - (isNarrow() ? 24 : 84); // beside the years
    const places = Math.max(4, (isBegun ? 1 : 2) * Math.floor(room / WIDTH[isNarrow() ? 1 : 0]));
    const hasMore = named.length + unnamed.length > places;
    const most = hasMore ? places - 1 : places;
    const groups = unnamed.slice(0, Math.max(Math.floor(most / 3), most - named.length));
    const shown = [...named.slice(0, most - groups.length), ...groups];
    const all = this.opener("face-tile", [h("span", { class: "face sign" }, icon("people")), h("span", {}, "All")]);
    this.element.replaceChildren(
      ...shown.map((person) => choice(person, search, { tabindex: "-1" })), // the panel says "without" to the keyboard
      ...(hasMore ? [all] : []),
    );
    this.element.children[focused]?.querySelector("button")?.focus({ preventScroll: true }); // for the next one
  }

  opener(kind, content) {
    const open = (event) => this.open(event.currentTarget);
    return h(
      "button",
      { type: "button", class: kind, "aria-haspopup": "dialog", "aria-expanded": "false", onclick: open },
      content,
    );
  }

  // Everybody, to be found by a few letters; it stays open for the next one.
  open(anchor) {
    const list = h("div", { class: "everybody" });
    const field = h("input", {
      type: "text",
      placeholder: "Name",
      "aria-label": "Name of somebody",
      autocomplete: "off",
      oninput: () => fill(),
    });
    const act = (person) => {
      search(person);
      fill();
      if (!isTouch()) field.focus(); // what was pressed is not there any more
    };
    const fill = () => {
      const wanted = field.value.trim()
        ? namedLike(field.value).map((one) => ({ saved: one }))
        : [...byPhotos(), ...this.groups];
      list.replaceChildren(
        ...wanted
          .filter((person) => !isAsked(person))
          .slice(0, MOST_SHOWN)
          .map((person) => choice(person, act)),
      );
    };
    fill();
    if (isTouch()) list.querySelector("button")?.setAttribute("autofocus", ""); // its keyboard would cover the faces
    popup(anchor, "People", [field, list]);
  }
}
