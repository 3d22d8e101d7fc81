// "Yes, this is Anna" and "Not Anna" about saved people: kept in the library, with Undo.

import { api } from "../api.js";
import { toast, undoable } from "../toasts.js";

// `person` is a saved person's {id, name}; resolves to whether it was stored.
async function say(verdict, text, person, photo, face, undone) {
  try {
    const { change } = await api[verdict](person.id, photo.id, face);
    undoable(text, change, undone);
    return true;
  } catch (error) {
    toast(error.message, "error");
    return false;
  }
}

export const confirmFace = (person, ...where) => say("confirm", `Kept: this is ${person.name}.`, person, ...where);
export const refuseFace = (person, ...where) => say("refuse", `Kept: this is not ${person.name}.`, person, ...where);
