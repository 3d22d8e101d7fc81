// Pictures of faces: of an upload, of a saved person, of a group, or cut out of a photo by the style sheet.

import { h } from "./dom.js";
import { urls } from "./api.js";

export function cutOut(photo, box, side) {
  const [x0, y0, x1, y1] = box;
  const span = Math.min(Math.max(x1 - x0, y1 - y0) * 1.5, photo.width, photo.height);
  const left = Math.min(Math.max((x0 + x1) / 2 - span / 2, 0), photo.width - span);
  const top = Math.min(Math.max((y0 + y1) / 2 - span / 2, 0), photo.height - span);
  const scale = side / span;
  const size = span * 6 < Math.max(photo.width, photo.height) ? 1600 : 640;
  return h("div", {
    class: "face",
    style: {
      width: `${side}px`,
      height: `${side}px`,
      backgroundImage: `url("${urls.thumbnail(photo, size)}")`,
      backgroundSize: `${photo.width * scale}px ${photo.height * scale}px`,
      backgroundPosition: `${-left * scale}px ${-top * scale}px`,
    },
  });
}

// A picture that cannot be had leaves its place, with a letter.
export function faceImage(source, letter = "?", alt = "") {
  const nobody = () => h("span", { class: "nobody", "aria-hidden": "true" }, [...letter][0]?.toUpperCase() ?? "?");
  if (!source) return nobody();
  const image = h("img", { src: source, alt, loading: "lazy", decoding: "async" });
  image.addEventListener("error", () => image.replaceWith(nobody()));
  return image;
}

export function round(source, letter = "?") {
  return h("div", { class: "face" }, faceImage(source, letter));
}

export const coverOf = (person) => round(person.has_picture ? urls.person(person) : null, person.name);

export function faceOf(person, side) {
  const first = person.examples[0];
  if (person.saved) return coverOf(person.saved);
  if (person.group) return round(person.group.cover && urls.face(person.group.cover));
  if (first?.id) return round(urls.upload(first.id));
  if (first?.photo) return cutOut(first.photo, first.box, side);
  return round(null);
}
