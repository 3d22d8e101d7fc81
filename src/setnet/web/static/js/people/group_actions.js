// What can be done with a group of faces: named, hidden, shown again, opened, searched for; each with Undo.

import { api, urls } from "../api.js";
import { plural } from "../dom.js";
import { round } from "../face_picture.js";
import { savedAsking } from "../naming.js";
import { toast, undoable } from "../toasts.js";
import { viewPhoto } from "../viewer/viewer.js";
import { GroupSheet } from "./group_sheet.js";

export class GroupActions {
  // left(id): a group is not where it was; reload(): everything may be elsewhere; search({group}): looks for its person.
  constructor({ left, reload, search }) {
    this.left = left;
    this.reload = reload;
    this.search = search;
  }

  open(group) {
    new GroupSheet(group, this).open();
  }

  find(group) {
    this.search({ group });
  }

  async name(group, name, without = []) {
    try {
      const person = await savedAsking(
        (as, if_exists) => api.nameGroup(group.id, { name: as, without, if_exists }),
        name,
        () => round(group.cover && urls.face(group.cover)),
      );
      if (!person) return false;
      undoable(`${person.name} is saved, with ${plural(person.examples, "example face")}.`, person.change, this.reload);
      await this.left(group.id);
      return true;
    } catch (error) {
      toast(error.message, "error");
      return false;
    }
  }

  async hide(group) {
    try {
      undoable(
        "Hidden. You find it at the end of this page.",
        (await api.hideGroup(group.id, true)).change,
        this.reload,
      );
      await this.left(group.id);
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async show(group) {
    try {
      undoable("Shown again.", (await api.hideGroup(group.id, false)).change, this.reload);
      await this.reload();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  // The photo of a face, in the large view.
  view(member) {
    return viewPhoto(member.photo);
  }
}
