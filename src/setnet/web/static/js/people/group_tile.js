// One group of faces in the grid: a face, how many photos, and who it is or that it is nobody known.

import { urls } from "../api.js";
import { h, icon, plural } from "../dom.js";
import { faceImage } from "../face_picture.js";
import { NameField } from "../name_field.js";
import { span } from "./dates.js";

const about = (group) => [plural(group.photos, "photo"), span(group.first, group.last)].filter(Boolean).join(", ");

function picture(group, open) {
  return h(
    "button",
    { type: "button", class: "picture", "aria-label": `See the faces of this person: ${about(group)}`, onclick: open },
    faceImage(group.cover && urls.face(group.cover, 320)),
    h("span", { class: "count" }, icon("photo"), group.photos.toLocaleString()),
  );
}

// act: {open(group), name(group, name), hide(group)}
export function unnamedTile(group, act) {
  const field = new NameField({
    label: `Name this person, ${about(group)}`,
    placeholder: "Name this person",
    accept: (name) => act.name(group, name),
    button: true,
  });
  return h(
    "li",
    { class: "group-tile", "data-group": group.id },
    picture(group, () => act.open(group)),
    h("div", { "data-writes": true }, field.element),
    h(
      "button",
      {
        type: "button",
        class: "button quiet compact nobody-known",
        "data-writes": true,
        onclick: () => act.hide(group),
      },
      "Nobody I know",
    ),
  );
}

// act: {open(group), show(group)}
export function hiddenTile(group, act) {
  return h(
    "li",
    { class: "group-tile is-hidden", "data-group": group.id },
    picture(group, () => act.open(group)),
    h(
      "button",
      { type: "button", class: "button compact", "data-writes": true, onclick: () => act.show(group) },
      "Show again",
    ),
  );
}
