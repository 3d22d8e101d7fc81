// Where boxes and names go on a picture.

import { isNarrow } from "../device.js";

const LINE = 23; // height of a name with the space around it

export function boxStyle(box, photo) {
  const inside = (value, most) => Math.min(Math.max(value, 0), most); // a face may reach over the edge of its photo
  const [x0, y0, x1, y1] = [
    inside(box[0], photo.width),
    inside(box[1], photo.height),
    inside(box[2], photo.width),
    inside(box[3], photo.height),
  ];
  return {
    left: `${(x0 / photo.width) * 100}%`,
    top: `${(y0 / photo.height) * 100}%`,
    width: `${((x1 - x0) / photo.width) * 100}%`,
    height: `${((y1 - y0) / photo.height) * 100}%`,
  };
}

const apart = (a, b) =>
  a.left + a.width <= b.left || b.left + b.width <= a.left || a.top + a.height <= b.top || b.top + b.height <= a.top;

// The places of names in pixels: under, over or beside their face, off each other and off all other faces.
// One that fits nowhere is null: on a small picture no name is better than one on somebody else's face.
export function tagPlaces(tags, photo, width, height, room = 0) {
  const [sx, sy] = [width / photo.width, height / photo.height];
  const onScreen = ([x0, y0, x1, y1]) => ({
    left: x0 * sx,
    top: y0 * sy,
    width: (x1 - x0) * sx,
    height: (y1 - y0) * sy,
  });
  const faces = photo.faces.map((face) => onScreen(face.box));
  const taken = [];
  return tags.map(({ box, text }) => {
    const own = onScreen(box);
    const size = Math.min(text.length * (isNarrow() ? 6.4 : 7.2) + 14 + room, isNarrow() ? 130 : 190);
    const middle = Math.min(Math.max(own.left + own.width / 2 - size / 2, 2), width - size - 2);
    const [under, over] = [own.top + own.height + 3, own.top - LINE];
    const places = [
      [middle, under],
      [middle, over],
      [own.left, under],
      [own.left + own.width - size, under],
      [own.left, over],
      [own.left + own.width - size, over],
      [own.left + own.width + 3, own.top],
      [own.left - size - 3, own.top],
      [middle, over - LINE],
      [middle, under + LINE],
      [middle, own.top + own.height - LINE],
    ];
    const free = places
      .map(([left, top]) => ({ left, top, width: size, height: LINE }))
      .find(
        (place) =>
          place.left >= 0 &&
          place.left + size <= width + 1 &&
          place.top >= 0 &&
          place.top + LINE <= height + 1 &&
          taken.every((other) => apart(place, other)) &&
          faces.every((face) => apart(place, face) || isSame(face, own)),
      );
    if (!free) return null;
    taken.push(free);
    return { left: `${free.left}px`, top: `${free.top}px` };
  });
}

const isSame = (a, b) => Math.abs(a.left - b.left) + Math.abs(a.top - b.top) + Math.abs(a.width - b.width) < 2;
