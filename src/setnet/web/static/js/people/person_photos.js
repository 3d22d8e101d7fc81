// All photos of a person under headings of months, latest first.

import { api } from "../api.js";
import { h, plural } from "../dom.js";
import { findFace } from "../search/find_face.js";
import { Gallery } from "../search/gallery.js";
import { confirmFace, refuseFace } from "../search/verdicts.js";
import { Viewer } from "../search/viewer.js";
import { toast } from "../toasts.js";
import { monthOf } from "./dates.js";

export class PersonPhotos {
  constructor({ changed }) {
    this.changed = changed;
    this.gallery = new Gallery({ open: (hit) => this.view(hit), reject: (match, hit) => this.refuse(match, hit), height: [190, 126] });
    this.more = h("div", { class: "more" });
    this.none = h("p", { class: "muted none", hidden: true }, "No photo of the library shows them.");
    this.element = h("div", { class: "by-month" }, this.none, this.gallery.element, this.more);
    this.clear();
    new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) this.next(); }, { rootMargin: "900px" }).observe(this.more);
  }

  clear() {
    this.hits = [];
    this.cursor = null;
    this.gallery.clear();
  }

  async load(person) {
    this.person = person;
    const page = await api.photosOf(person.id, Math.min(Math.max(60, this.hits.length), 200));
    this.hits = [];
    this.add(page);
    this.none.hidden = page.total > 0;
    return page.total;
  }

  add({ photos, cursor }) {
    const { name } = this.person;
    this.cursor = cursor;
    for (const { face, sure, ...photo } of photos) this.hits.push({ photo, matches: [{ name, sure, face, box: photo.faces[face].box, quiet: sure }] });
    this.draw();
  }

  draw() {
    const months = new Map();
    for (const hit of this.hits) {
      const month = monthOf(hit.photo.taken);
      months.set(month, [...(months.get(month) ?? []), hit]);
    }
    this.gallery.show([...months].map(([title, hits]) => ({ title, note: plural(hits.length, "photo"), hits })));
    this.more.textContent = this.cursor ? "Loading more…" : "";
  }

  async next() {
    if (!this.cursor || this.isLoading) return;
    this.isLoading = true;
    const { person, cursor } = this;
    try {
      const page = await api.photosOf(person.id, 60, cursor);
      if (person === this.person && cursor === this.cursor) this.add(page);
    } catch (error) { this.cursor = null; toast(error.message, "error"); }
    this.isLoading = false;
  }

  refuse(match, hit, undone = () => {}) {
    return refuseFace(this.person, hit.photo, match.face, () => { undone(); this.changed(); }).then((done) => { if (done) this.settle(hit, []); });
  }

  async confirm(match, hit, undone) {
    const done = await confirmFace(this.person, hit.photo, match.face, () => { undone(); this.changed(); });
    if (done) this.settle(hit, [{ ...match, sure: true, quiet: true }]);
    return done;
  }

  // The photo stays where it is while the large view is open.
  settle(hit, matches) {
    const known = this.hits.find((other) => other.photo.id === hit.photo.id);
    if (known) known.matches = matches;
    this.isStale = true;
    this.draw();
    this.finish();
  }

  finish() {
    if (!this.isStale || document.getElementById("viewer")) return;
    this.isStale = false;
    this.changed();
  }

  view(hit) {
    const source = {
      hits: () => this.hits,
      index: this.hits.findIndex((other) => other.photo.id === hit.photo.id),
      more: () => this.next(),
      hasMore: () => Boolean(this.cursor),
      closed: (last) => { this.gallery.element.querySelector(`[data-photo="${last?.photo.id}"] .open`)?.focus(); this.finish(); },
    };
    new Viewer(source, { savedOf: () => this.person, find: findFace, confirm: (...said) => this.confirm(...said), reject: (...said) => this.refuse(...said) }).show();
  }
}
