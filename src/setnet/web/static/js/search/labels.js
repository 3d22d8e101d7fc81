// "Yes, this is Anna" and "Not Anna" about saved people: kept in the library, with Undo.

import { api } from "../api.js";
import { plural } from "../dom.js";
import { toast, undoable } from "../toasts.js";

// The faces that the library takes for a person's, in photos of which only the file is known.
async function facesOf(person, photos) {
  const known = await Promise.all(photos.map(({ id }) => api.photo(id)));
  return known.flatMap(({ id, faces }) =>
    faces.flatMap((found, face) => (found.person === person.name ? [{ photo: id, face }] : [])),
  );
}

// Says of `faces`, {photo, face} by id and number, that they are a saved person's, or are not: also of the faces of theirs in the photos `alike`.
// A face of null was tagged by hand. Resolves to whether something was stored.
export async function say(label, person, { faces, alike = [] }, undone) {
  const changes = [];
  let [told, remarks] = [0, []];
  try {
    for (const { photo, face } of [...faces, ...(await facesOf(person, alike))]) {
      const answer = await (face === null ? api.untag(photo, person.id) : api[label](person.id, photo, face));
      const { change, notes = [] } = answer;
      if (change !== null) changes.push(change); // a copy has what was said of its first
      if (notes.length) remarks = notes;
      told += 1;
    }
  } catch (error) {
    toast(error.message, "error");
  }
  if (!told) return false;
  for (const remark of remarks) toast(remark, "warn");
  const what = label === "reject" ? "removed from" : "confirmed in";
  undoable(`${person.name} ${what} ${told === 1 ? "this photo" : plural(told, "photo")}.`, changes, undone);
  return true;
}

const one = (hit, face) => [{ photo: hit.photo.id, face }];

export const confirmFace = (person, hit, face, undone) => say("confirm", person, { faces: one(hit, face) }, undone);

// Of a stack, whose photos show the same, in all photos: else the next one takes the place of the first.
export const rejectFace = (person, hit, face, undone) =>
  say("reject", person, { faces: one(hit, face), alike: face === null ? [] : hit.alike }, undone);
