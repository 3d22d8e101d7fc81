// A round picture of a face: of an upload, of a saved person, or cut out of a photo by the style sheet.

import { h } from "./dom.js";
import { urls } from "./api.js";

export function cutOut(photo, box, side) {
  const [x0, y0, x1, y1] = box;
  const span = Math.min(Math.max(x1 - x0, y1 - y0) * 1.5, photo.width, photo.height);
  const left = Math.min(Math.max((x0 + x1) / 2 - span / 2, 0), photo.width - span);
  const top = Math.min(Math.max((y0 + y1) / 2 - span / 2, 0), photo.height - span);
  const scale = side / span;
  const size = span * 6 < Math.max(photo.width, photo.height) ? 1600 : 640;
  return h("div", { class: "face", style: {
    width: `${side}px`, height: `${side}px`,
    backgroundImage: `url("${urls.thumbnail(photo, size)}")`,
    backgroundSize: `${photo.width * scale}px ${photo.height * scale}px`,
    backgroundPosition: `${-left * scale}px ${-top * scale}px`,
  } });
}

export function round(source, letter = "?") {
  if (!source) return h("div", { class: "face nobody", "aria-hidden": "true" }, letter.slice(0, 1).toUpperCase());
  return h("div", { class: "face" }, h("img", { src: source, alt: "", loading: "lazy" }));
}

export function faceOf(person, side) {
  const first = person.examples[0];
  if (person.pictured) return round(urls.person({ name: person.saved, examples: 0 }));
  if (first?.id) return round(urls.face(first.id));
  if (first?.photo) return cutOut(first.photo, first.box, side);
  return round(null, person.saved || "?");
}
