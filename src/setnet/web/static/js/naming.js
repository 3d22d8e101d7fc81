// Giving names: to a group, a face or a person; a name that is somebody's asks before faces are mixed.

import { api, urls } from "./api.js";
import { confirmed, decided } from "./dialogs.js";
import { h, plural } from "./dom.js";
import { coverOf, round } from "./face_picture.js";
import { NameField } from "./name_field.js";
import { called, loadSaved, saved } from "./saved_people.js";
import { toast, undoable } from "./toasts.js";

const MOST_FACES = 32; // that are saved in one request

// Saves with `save(name, if_exists)`; resolves to the person, or to null where the user wants another name.
export async function savedAsking(save, name, face) {
  let person;
  try {
    person = await save(name, "ask");
  } catch (error) {
    if (!error.person) throw error;
    const answer = await whetherSame(error.person, name, face());
    if (!answer) return null;
    person = answer === "yes" ? await save(name, "add") : await save(freeName(error.person.name), "refuse");
  }
  for (const note of person.notes ?? []) toast(note, "warn");
  return person;
}

// A name that tells a person from those who are called the same.
function freeName(name) {
  let number = 2;
  while (called(`${name} ${number}`)) number += 1;
  return `${name} ${number}`;
}

// Resolves to "yes", to "other" for somebody else of that name, or to null. The careful answer has the focus: a second Enter must not mix two people.
function whetherSame(person, name, face) {
  const isSpeltSo = [person.name, ...person.aliases].includes(name);
  return decided({
    title: `Is this the same ${person.name}?`,
    content: [
      h("div", { class: "pair" }, face, coverOf(person)),
      h(
        "p",
        {},
        `${person.name} is saved already, with ${plural(person.examples, "example face")}${isSpeltSo ? ", and looks different." : `; you wrote “${name}”.`}`,
      ),
    ],
    yes: `Yes, add to ${person.name}`,
    other: `A different ${person.name}`,
    no: "No, another name",
    cautious: true,
  });
}

// Asks for a name, with the saved ones on offer; resolves to null when cancelled.
export function askForName({ title, action, face = null, except = null }) {
  const field = new NameField({ label: "Name", placeholder: "Name", except, accept: (name) => dialog.close(name) });
  let dialog;
  return decided({
    title,
    content: [face && h("div", { class: "pair" }, face), field.element],
    yes: action,
    no: "Cancel",
    opened: (shown) => {
      dialog = shown;
      field.focus();
    },
    answer: () => field.value.trim(),
  });
}

// Names a face of a photo, and with it the group of faces that look the same; `done(isNamed)` is called when it is stored, and when that is undone.
export async function nameFace(photo, number, done) {
  const news = (group, isNamed) => {
    document.dispatchEvent(new CustomEvent("people-named", { detail: group }));
    done(isNamed);
  };
  const face = () => round(urls.face({ photo: photo.id, face: number }));
  const name = await askForName({ title: "Who is this?", action: "Save", face: face() });
  if (!name) return;
  try {
    const group = await unnamedGroup(photo, number);
    const save = (as, if_exists) =>
      group
        ? api.nameGroup(group.id, { name: as, if_exists })
        : api.save({ name: as, if_exists, photo_faces: [{ photo: photo.id, face: number }] });
    const person = await savedAsking(save, name, face);
    if (!person) return;
    await loadSaved();
    const { photos } = saved.people.find((one) => one.id === person.id) ?? group ?? { photos: 1 };
    undoable(`${person.name}, in ${plural(photos, "photo")}.`, person.change, async () => {
      await loadSaved();
      news(null, false);
    });
    news(group?.id ?? null, true);
  } catch (error) {
    toast(error.message, "error");
  }
}

// Names the only faces of several photos.
export async function nameFaces(faces, undone) {
  const [first] = faces;
  const face = () => round(urls.face(first));
  const name = await askForName({
    title: `Who is in these ${plural(faces.length, "photo")}?`,
    action: "Save",
    face: face(),
  });
  if (!name) return;
  try {
    const changes = [];
    const save = async (as, if_exists) => {
      let person;
      for (let from = 0; from < faces.length; from += MOST_FACES) {
        const photo_faces = faces.slice(from, from + MOST_FACES);
        person = await api.save({ name: as, if_exists: from ? "add" : if_exists, photo_faces });
        changes.push(person.change);
      }
      return person;
    };
    const person = await savedAsking(save, name, face);
    if (!person) return;
    await loadSaved();
    undoable(`${person.name} in ${plural(faces.length, "photo")}.`, changes, async () => {
      await loadSaved();
      undone();
    });
  } catch (error) {
    toast(error.message, "error");
  }
}

// The group that a face is in, if nobody has it yet.
async function unnamedGroup(photo, number) {
  const { group: id } = (await api.photo(photo.id)).faces[number];
  const group = id && (await api.group(id, 1));
  return group && !group.person ? group : null;
}

// Gives a saved person another name; one that is taken is a merge, if that is what is meant. Resolves to who they are then.
export async function renamed(person, name, undone) {
  const other = called(name);
  if (other && other.id !== person.id) return mergedIfMeant(person, other, undone);
  try {
    const changed = await api.edit(person.id, { name });
    undoable(`${person.name} is called ${changed.name} now.`, changed.change, undone);
    return changed;
  } catch (error) {
    toast(error.message, "error");
    return null;
  }
}

// Merges; where the faces do not look like one person, the user is asked once more.
async function mergedAsking(person, into) {
  try {
    return await api.merge(into.id, [person.id], "ask");
  } catch (error) {
    if (!error.person) throw error;
    const sure = await confirmed({
      title: `${person.name} and ${into.name} look different`,
      text: `Photos of both would be ${into.name}'s, and fewer of them certain.`,
      action: "Merge all the same",
    });
    return sure ? api.merge(into.id, [person.id], "merge") : null;
  }
}

// For a name that was typed and is taken: it may not have been meant so.
export async function mergedIfMeant(person, into, undone) {
  const sure = await confirmed({
    title: `Are ${person.name} and ${into.name} one person?`,
    text: `All faces of ${person.name} become ${into.name}'s, and the name ${person.name} is gone. This can be undone.`,
    action: "Merge",
  });
  return sure ? merged(person, into, undone) : null;
}

export async function merged(person, into, undone) {
  try {
    const kept = await mergedAsking(person, into);
    if (!kept) return null;
    undoable(`${person.name} and ${into.name} are one person now.`, kept.change, undone);
    return kept;
  } catch (error) {
    toast(error.message, "error");
    return null;
  }
}
