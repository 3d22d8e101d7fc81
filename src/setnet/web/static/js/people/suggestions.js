// "Is this Anna too?", one group at a time: y, n, s or the buttons; every answer can be undone.

import { api, urls } from "../api.js";
import { active, h, plural } from "../dom.js";
import { coverOf, faceImage } from "../face_picture.js";
import { saved } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";
import { span } from "./dates.js";

const FACES = 5;
const KEYS = { y: "yes", n: "no", s: "skip" };

export class Suggestions {
  // answered(id): an answer was stored, which named the group `id`; reload(): one was undone; open(group): shows all its faces.
  constructor({ answered, reload, open }) {
    this.answered = answered;
    this.reload = reload;
    this.open = open;
    this.waiting = [];
    this.over = new Set(); // skipped, or answered a moment ago
    this.element = h("section", { class: "suggestion", "aria-label": "Suggestion", "data-writes": true, hidden: true });
    addEventListener("keydown", (event) => this.key(event));
  }

  // person: the id of the one that is asked about, or null for everybody.
  async load(person = null) {
    this.person = person;
    const { suggestions } = await api.suggestions(person, 50);
    this.waiting = suggestions.filter((one) => !this.over.has(this.keyOf(one)));
    this.draw();
  }

  keyOf({ id, group }) {
    return `${id}/${group.id}`;
  }

  draw() {
    const [one] = this.waiting;
    const focused = this.element.contains(document.activeElement) && active().dataset.answer;
    this.element.hidden = !one;
    if (!one) {
      this.element.replaceChildren();
      return;
    }
    const person = saved.people.find((known) => known.id === one.id) ?? {
      id: one.id,
      name: one.person,
      has_picture: false,
    };
    const { group } = one;
    const strip = h(
      "button",
      {
        type: "button",
        class: "strip",
        "aria-label": `See all faces: ${plural(group.faces, "face")}`,
        onclick: () => this.open(group),
      },
      faceImage(group.cover && urls.face(group.cover, 320)),
    );
    const answer = (name, text, kind = "") =>
      h(
        "button",
        {
          type: "button",
          class: `button ${kind}`,
          "data-answer": name,
          "aria-keyshortcuts": name[0],
          onclick: () => this.answer(name),
        },
        text,
        h("kbd", { "aria-hidden": "true" }, name[0]),
      );
    this.element.replaceChildren(
      h(
        "div",
        { class: "question" },
        h("h2", { "aria-live": "polite" }, `Is this ${person.name} too?`),
        h(
          "p",
          { class: "muted small" },
          [
            `${plural(group.faces, "face")} in ${plural(group.photos, "photo")}`,
            span(group.first, group.last),
            this.waiting.length > 1 && `${this.waiting.length - 1} more to ask`,
          ]
            .filter(Boolean)
            .join(" · "),
        ),
        h(
          "div",
          { class: "answers" },
          answer("yes", "Yes", "primary"),
          answer("no", "No"),
          answer("skip", "Skip", "quiet"),
        ),
      ),
      h(
        "div",
        { class: "compared" },
        h("figure", {}, coverOf(person), h("figcaption", {}, person.name)),
        h("span", { class: "versus", "aria-hidden": "true" }, "?"),
        strip,
      ),
    );
    if (focused) this.element.querySelector(`[data-answer="${focused}"]`)?.focus({ preventScroll: true });
    if (group.faces > 1) this.fill(strip, group);
  }

  async fill(strip, group) {
    const { members } = await api.group(group.id, FACES).catch(() => ({ members: [] }));
    if (members.length) strip.replaceChildren(...members.map((member) => faceImage(urls.face(member))));
  }

  // Single keys act only while nothing else has the focus, so that they never get in the way of typing.
  key(event) {
    const name = KEYS[event.key.toLowerCase()];
    if (!name || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const at = document.activeElement;
    const isFree = at === document.body || at?.id === "main" || this.element.contains(at);
    if (!isFree || !this.element.offsetParent || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    this.answer(name);
  }

  async answer(name) {
    const [one] = this.waiting;
    if (!one || this.isBusy) return;
    this.isBusy = true;
    try {
      if (name !== "skip") await this.store(one, name);
      this.over.add(this.keyOf(one));
      this.waiting.shift();
      this.draw();
    } catch (error) {
      toast(error.message, "error");
    }
    this.isBusy = false;
    if (name !== "skip") await this.answered(name === "yes" ? one.group.id : null);
  }

  async store(one, name) {
    const { group, person, id } = one;
    const back = async () => {
      this.over.delete(this.keyOf(one));
      await this.reload();
    };
    if (name === "yes") {
      const { change } = await api.nameGroup(group.id, { name: person, if_exists: "add" });
      undoable(`${plural(group.faces, "more face")} of ${person}.`, change, back);
    } else {
      const { change } = await api.rejectGroup(group.id, id);
      undoable(`That is not ${person}.`, change, back);
    }
  }
}
