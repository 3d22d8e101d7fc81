// "Yes, this is Anna" and "Not Anna" about saved people: kept in the library, with Undo.

import { api } from "../api.js";
import { plural } from "../dom.js";
import { toast, undoable } from "../toasts.js";

// `person` is a saved person's {id, name}; resolves to whether it was stored.
async function say(label, text, person, photo, face, undone) {
  try {
    const tagged = face === null; // by hand, where no face is
    const { change, notes = [] } = await (tagged
      ? api.untag(photo.id, person.id)
      : api[label](person.id, photo.id, face));
    for (const note of notes) toast(note, "warn");
    undoable(text, change, undone);
    return true;
  } catch (error) {
    toast(error.message, "error");
    return false;
  }
}

// The same of several faces, as one message: `faces` are {photo, face} by id and number.
export async function sayOfAll(label, person, faces, undone) {
  const changes = [];
  try {
    for (const { photo, face } of faces) changes.push((await api[label](person.id, photo, face)).change);
  } catch (error) {
    toast(error.message, "error");
  }
  const what = label === "reject" ? "removed from" : "confirmed in";
  if (changes.length) undoable(`${person.name} ${what} ${plural(changes.length, "photo")}.`, changes, undone);
}

export const confirmFace = (person, ...where) =>
  say("confirm", `${person.name} confirmed in this photo.`, person, ...where);
export const rejectFace = (person, ...where) =>
  say("reject", `${person.name} removed from this photo.`, person, ...where);
