// One photo of a gallery: the picture, and when it is pointed at, who is in it.

import { urls } from "../api.js";
import { h, icon, iconButton } from "../dom.js";
import { clock } from "../viewer/shot_strip.js";
import { bandOf, called, certainty, spoken } from "./matches.js";
import { selection } from "./selection.js";
import { boxStyle, tagPlaces } from "./tags.js";

const MADE = 320; // pixels of the pictures that are made while indexing

export const blankTile = (width, height) =>
  h("div", { class: "tile is-blank", style: { width: `${width}px`, height: `${height}px` } });

// act: {open(hit), reject(match, hit), choose(hit, event)}
export function tileOf(hit, width, height, act) {
  const { photo, matches } = hit;
  const size = Math.max(width, height) * Math.min(devicePixelRatio, 2) > MADE * 1.25 ? 640 : MADE;
  const people = matches
    .filter((match) => !match.quiet)
    .map(spoken)
    .join(", ");
  const image = h("img", { src: urls.thumbnail(photo, size), alt: "", decoding: "async" });
  const name = `${photo.name}${photo.kind === "video" ? ` ${clock(photo.from)}` : ""}`;
  const date = photo.taken ? `, ${new Date(photo.taken).toLocaleDateString([], { dateStyle: "long" })}` : "";
  const isChosen = selection.has(photo.id);
  const alike = hit.alike?.length ?? 0;
  const tile = h(
    "div",
    {
      class: `tile ${isChosen ? "is-chosen" : ""}`,
      "data-photo": photo.id,
      style: { width: `${width}px`, height: `${height}px`, backgroundColor: photo.colour },
    },
    h(
      "button",
      {
        type: "button",
        class: "open",
        "aria-label": `Open ${name}${people ? `, with ${people}` : ""}${alike ? `, ${alike + 1} alike` : ""}${date}`,
        onclick: (event) =>
          selection.isOn || event.shiftKey || event.ctrlKey || event.metaKey ? act.choose(hit, event) : act.open(hit),
      },
      image,
    ),
    iconButton("check", `Select ${name}`, (event) => act.choose(hit, event), {
      class: "choose",
      tabindex: "-1", // the key x does the same
      "aria-pressed": String(isChosen),
    }),
  );
  image.addEventListener("error", () => {
    image.remove();
    tile.classList.add("is-broken");
  });
  if (photo.kind === "video") film(tile, photo);
  if (alike) tile.append(h("span", { class: "film" }, icon("stack"), String(alike + 1)));
  const matched = new Set(matches.map((match) => match.face));
  photo.faces.forEach((face, number) => {
    if (!matched.has(number)) tile.append(h("div", { class: "box other", style: boxStyle(face.box, photo) }));
  });
  const placed = matches.filter((match) => match.box); // whoever was tagged may have none
  const places = tagPlaces(
    placed.map((match) => ({ box: match.box, text: called(match) })),
    photo,
    width,
    height,
    18,
  );
  for (const match of placed)
    tile.append(
      h("div", { class: `box match ${bandOf(match)}`, style: boxStyle(match.box, photo), "data-name": match.name }),
    );
  placed.forEach((match, number) => {
    if (places[number] && !match.quiet) tile.append(tag(match, hit, places[number], act));
  });
  return tile;
}

// A shot has a film icon and its length, and plays a few pictures while it is pointed at.
function film(tile, photo) {
  const sprite = h("div", { class: "sprite", "aria-hidden": "true" });
  tile.classList.add("is-shot");
  tile.append(sprite, h("span", { class: "film" }, icon("film"), clock(Math.round(photo.to - photo.from))));
  tile.addEventListener(
    "pointerenter",
    () => {
      sprite.style.backgroundImage ||= `url("${urls.sprite(photo)}")`;
    },
    { passive: true },
  );
}

function tag(match, hit, place, act) {
  return h(
    "span",
    {
      class: `tag ${bandOf(match)}`,
      style: place,
      title: certainty(match),
      onclick: (event) => {
        if (!event.target.closest(".not")) act.open(hit);
      },
    },
    h("span", { class: "who" }, called(match)),
    h(
      "button",
      {
        type: "button",
        class: "not",
        tabindex: "-1", // the large view says it too
        "aria-label": `Not ${match.name}`,
        "data-writes": Boolean(match.saved),
        title: `Not ${match.name}`,
        onclick: () => act.reject(match, hit),
      },
      icon("close"),
    ),
  );
}
