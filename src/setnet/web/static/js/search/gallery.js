// A justified gallery in groups; images load when they come near the screen, off-screen rows cost nothing.

import { urls } from "../api.js";
import { h, icon } from "../dom.js";
import { bandOf, called, figures, spoken } from "./matches.js";
import { clock } from "./shot_strip.js";

const PHONE = matchMedia("(max-width: 640px)");
const GAP = () => (PHONE.matches ? 4 : 6);
const HEIGHT = [250, 150]; // of a row: on a desktop, on a phone

export function boxStyle(box, photo) {
  const [x0, y0, x1, y1] = box;
  return { left: `${(x0 / photo.width) * 100}%`, top: `${(y0 / photo.height) * 100}%`,
    width: `${((x1 - x0) / photo.width) * 100}%`, height: `${((y1 - y0) / photo.height) * 100}%` };
}

const LINE = 23; // height of a tag with the space around it

// Where the tags of a photo go, in pixels: under or over their face, out of each other's way.
export function tagPlaces(tags, photo, width, height) {
  const taken = [];
  return tags.map(({ box, text }) => {
    const scale = [width / photo.width, height / photo.height];
    const size = Math.min(text.length * 6.7 + (PHONE.matches ? 12 : 22), PHONE.matches ? 120 : 180, width);
    const left = Math.min(Math.max(((box[0] + box[2]) / 2) * scale[0] - size / 2, 2), Math.max(width - size - (PHONE.matches ? 2 : 18), 0)); // room for "not this person"
    const [under, over] = [box[3] * scale[1] + 3, box[1] * scale[1] - LINE];
    const fits = (top) => top >= 0 && top + LINE <= height + 2
      && taken.every((t) => left + size < t.left || t.left + t.size < left || top + LINE <= t.top || t.top + LINE <= top);
    const top = [under, over, over - LINE, under + LINE, over - 2 * LINE].find(fits) ?? Math.min(Math.max(over, 0), height - LINE);
    taken.push({ left, top, size });
    return { left: `${left}px`, top: `${top}px` };
  });
}

const ratio = (photo) => Math.min(Math.max(photo.width / photo.height, 0.4), 3.2);

// Rows of photos that fill the width exactly, each about as tall as asked for.
export function rows(photos, width, [large, small] = HEIGHT) {
  const [target, gap] = [PHONE.matches ? small : large, GAP()];
  const made = [];
  let row = [];
  let sum = 0;
  for (const photo of photos) {
    row.push(photo);
    sum += ratio(photo);
    if (sum * target + gap * (row.length - 1) >= width) {
      made.push({ photos: row, height: (width - gap * (row.length - 1)) / sum });
      row = [];
      sum = 0;
    }
  }
  if (row.length) made.push({ photos: row, height: Math.min(target, (width - gap * (row.length - 1)) / sum) });
  return made;
}

export class Gallery {
  // groups: [{title, note, hits: [{photo, matches}]}]; a match is {name, sure, similarity, box, face, person};
  // one that is `quiet` is shown only when its photo is pointed at.
  constructor({ open, reject, height = HEIGHT }) {
    Object.assign(this, { open, reject, height });
    this.element = h("div", { class: "gallery" });
    this.groups = [];
    this.drawn = new Map();
    let width = 0;
    new ResizeObserver(() => {
      if (this.element.clientWidth && this.element.clientWidth !== width) { width = this.element.clientWidth; this.drawn.clear(); this.draw(); }
    }).observe(this.element);
  }

  show(groups) {
    this.groups = groups;
    this.draw();
  }

  clear() {
    this.groups = [];
    this.drawn.clear();
    this.element.replaceChildren();
  }

  draw() {
    const width = this.element.clientWidth;
    if (!width) return;
    this.before = this.drawn; // rows that look as before are used again; those no longer shown are let go
    this.drawn = new Map();
    this.element.replaceChildren(...this.groups.map((group) => this.group(group, width)));
  }

  group(group, width) {
    const hits = new Map(group.hits.map((hit) => [hit.photo, hit]));
    return h("section", { class: "group" },
      group.title && h("h2", {}, group.title, " ", h("small", {}, group.note)),
      rows(group.hits.map((hit) => hit.photo), width, this.height).map((row) => {
        const key = `${width}/${group.title}/${row.photos.map((p) => `${p.id}:${hits.get(p).matches.map((m) => `${m.person}.${m.face}.${called(m)}.${m.similarity}`)}`)}`;
        const element = this.before.get(key) ?? this.row(row, hits);
        this.drawn.set(key, element);
        return element;
      }));
  }

  row(row, hits) {
    const width = row.photos.reduce((sum, photo) => sum + ratio(photo) * row.height, GAP() * (row.photos.length - 1));
    return h("div", { class: "row-of-photos", style: { width: `${width}px`, containIntrinsicSize: `auto ${Math.round(row.height)}px` } },
      row.photos.map((photo) => this.tile(hits.get(photo), row.height)));
  }

  tile(hit, height) {
    const { photo, matches } = hit;
    const width = ratio(photo) * height;
    const size = Math.max(width, height) * Math.min(devicePixelRatio, 2) > 340 ? 640 : 320;
    const people = matches.filter((match) => !match.quiet).map(spoken).join(", ");
    const image = h("img", { src: urls.thumbnail(photo, size), alt: "", loading: "lazy", decoding: "async" });
    const tile = h("div", { class: "tile", "data-photo": photo.id, style: { width: `${width}px`, height: `${height}px` } },
      h("button", { type: "button", class: "open", "aria-label": `Open ${photo.name}${photo.kind === "video" ? ` ${clock(photo.from)}` : ""}${people ? `, with ${people}` : ""}`, onclick: () => this.open(hit) }, image));
    if (photo.kind === "video") this.film(tile, photo);
    image.addEventListener("error", () => { image.remove(); tile.classList.add("is-broken"); });
    const matched = new Set(matches.map((match) => match.face));
    const loud = matches.filter((match) => !match.quiet);
    photo.faces.forEach((face, number) => {
      if (!matched.has(number)) tile.append(h("div", { class: "box other", style: boxStyle(face.box, photo) }));
    });
    const places = tagPlaces(loud.map((match) => ({ box: match.box, text: called(match) })), photo, width, height);
    for (const match of matches) tile.append(h("div", { class: `box match ${bandOf(match)} ${match.quiet ? "quiet" : ""}`, style: boxStyle(match.box, photo), "data-name": match.name }));
    loud.forEach((match, number) => tile.append(this.tag(match, hit, places[number])));
    return tile;
  }

  // A shot has a film icon and its length, and plays a few pictures while it is pointed at.
  film(tile, photo) {
    const sprite = h("div", { class: "sprite", "aria-hidden": "true" });
    tile.classList.add("is-shot");
    tile.append(sprite, h("span", { class: "film" }, icon("film"), clock(Math.round(photo.to - photo.from))));
    tile.addEventListener("pointerenter", () => { sprite.style.backgroundImage ||= `url("${urls.sprite(photo)}")`; }, { passive: true });
  }

  tag(match, hit, place) {
    return h("span", { class: `tag ${bandOf(match)}`, style: place, title: figures(match), onclick: (event) => { if (!event.target.closest(".not")) this.open(hit); } },
      h("span", { class: "who" }, called(match)),
      h("button", { type: "button", class: "not", "aria-label": `Not ${match.name}`, title: `Not ${match.name}`, onclick: () => this.reject(match, hit) }, icon("close")));
  }
}

export function skeleton(width) {
  const shapes = Array.from({ length: 14 }, (_, n) => ({ width: [4, 3, 4, 2][n % 4], height: [3, 4, 3, 3][n % 4] }));
  return rows(shapes, width || 800).slice(0, 3).map((row) => h("div", { class: "row-of-photos", "aria-hidden": "true" },
    row.photos.map((shape) => h("div", { class: "skeleton", style: { width: `${ratio(shape) * row.height}px`, height: `${row.height}px` } }))));
}
