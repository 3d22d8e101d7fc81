// What can be done with a group of faces: named, hidden, shown again, opened, searched for; each with Undo.

import { api, urls } from "../api.js";
import { round } from "../face_picture.js";
import { Viewer } from "../search/viewer.js";
import { findFace } from "../search/search_view.js";
import { saved } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";
import { GroupSheet } from "./group_sheet.js";
import { savedAsking } from "./naming.js";

export class GroupActions {
  // changed(id): a group left its list; undone(): a change was taken back; find({group}): search for it.
  constructor({ changed, undone, find }) {
    Object.assign(this, { changed, undone });
    this.findIn = find;
  }

  open(group) { new GroupSheet(group, this).open(); }

  find(group) { this.findIn({ group }); }

  async name(group, name, without = []) {
    try {
      const person = await savedAsking((if_exists) => api.nameGroup(group.id, { name, without, if_exists }), name, () => round(group.cover && urls.face(group.cover)));
      if (!person) return false;
      undoable(`${person.name} is saved, with ${person.examples} example face${person.examples === 1 ? "" : "s"}.`, person.change, this.undone);
      await this.changed(group.id);
      return true;
    } catch (error) { toast(error.message, "error"); return false; }
  }

  hide(group) { return this.setHidden(group, true, "Hidden. You find it at the end of this page."); }

  show(group) { return this.setHidden(group, false, "Shown again."); }

  async setHidden(group, hidden, text) {
    try {
      const { change } = await api.hideGroup(group.id, hidden);
      undoable(text, change, this.undone);
      await this.changed(hidden ? group.id : null);
    } catch (error) { toast(error.message, "error"); }
  }

  // The photos of a group's faces in the large view, from the one that was pointed at.
  async view(members, member) {
    const load = async (one) => {
      const photo = await api.photo(one.photo);
      return { photo, matches: [] };
    };
    try {
      const hits = [await load(member)];
      new Viewer({ hits: () => hits, index: 0 }, { find: findFace, savedOf: () => null }).show();
    } catch (error) { toast(error.message, "error"); }
  }
}
