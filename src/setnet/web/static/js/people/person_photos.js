// All photos of a person under headings of months, latest first.

import { photoInAddress } from "../address.js";
import { api } from "../api.js";
import { h } from "../dom.js";
import { Gallery } from "../gallery/gallery.js";
import { hitOf } from "../gallery/hit.js";
import { findFace } from "../search/find_face.js";
import { confirmFace, rejectFace } from "../search/labels.js";
import { toast } from "../toasts.js";
import { viewPhoto, Viewer } from "../viewer/viewer.js";
import { byMonth } from "./dates.js";

export class PersonPhotos {
  constructor({ changed }) {
    this.changed = changed;
    this.gallery = new Gallery({
      open: (hit) => this.view(hit),
      reject: (match, hit) => this.refuse(match, hit),
      height: [190, 118],
      flow: true,
      moved: () => this.nearEnd(),
    });
    this.more = h("div", { class: "more" });
    this.none = h("p", { class: "muted none", hidden: true }, "No photo of the library shows them.");
    this.element = h("div", { class: "by-month" }, this.none, this.gallery.element, this.more);
    this.clear();
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
    const saved = this.person;
    this.cursor = cursor;
    for (const { face, sure, ...photo } of photos) {
      const box = photo.faces[face]?.box ?? null;
      this.hits.push(hitOf(photo, [{ name: saved.name, saved, sure, face, box, quiet: sure }]));
    }
    this.draw();
  }

  draw() {
    this.gallery.show(byMonth(this.hits));
    this.more.textContent = this.cursor ? "Loading more…" : "";
    this.nearEnd();
  }

  nearEnd() {
    if (this.cursor && this.more.offsetParent && this.more.getBoundingClientRect().top < 2 * innerHeight) this.next();
  }

  // The photo in the address is looked at.
  followPhoto() {
    const id = photoInAddress();
    if (!id || Viewer.current) return;
    const hit = this.hits.find((one) => one.photo.id === id);
    if (hit) this.view(hit);
    else viewPhoto(id);
  }

  async next() {
    if (!this.cursor || this.isLoading) return;
    this.isLoading = true;
    const { person, cursor } = this;
    let page = null;
    try {
      page = await api.photosOf(person.id, 120, cursor);
    } catch (error) {
      this.cursor = null;
      toast(error.message, "error");
    }
    this.isLoading = false;
    if (page && person === this.person && cursor === this.cursor) this.add(page);
  }

  refuse(match, hit, undone = () => {}) {
    return rejectFace(this.person, hit, match.face, () => {
      undone();
      this.changed();
    }).then((done) => {
      if (done) this.settle(hit, []);
    });
  }

  async confirm(match, hit, undone) {
    const done = await confirmFace(this.person, hit, match.face, () => {
      undone();
      this.changed();
    });
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
      closed: (last) => {
        this.gallery.reveal(last?.photo.id);
        this.finish();
      },
    };
    new Viewer(source, {
      savedOf: () => this.person,
      find: findFace,
      confirm: (...said) => this.confirm(...said),
      reject: (...said) => this.refuse(...said),
    }).show();
  }
}
