// What the user says of matches in the answer: kept in the library for saved people, for this search for others; each with Undo.

import { takeBack } from "../toasts.js";
import { hide } from "./query.js";
import { confirmFace, rejectFace } from "./labels.js";

export class Said {
  // view: the search view, whose answer follows when the large view is closed.
  constructor(view) {
    this.view = view;
    this.isStale = false;
  }

  async confirm(match, hit, undone) {
    const original = this.original(match, hit);
    const was = original.sure;
    const mark = (sure) => {
      original.sure = sure;
      this.isStale = true;
      this.view.draw();
    };
    const done = await confirmFace(this.view.savedOf(match), hit, match.face, () => {
      mark(was);
      undone();
      this.settle();
    });
    if (done) mark(true);
    return done;
  }

  async reject(match, hit, undone = () => {}) {
    const person = this.view.answer.people[match.person];
    const hidden = (on) => hide(person, hit.photo.id, match.face, on);
    if (!person.saved) {
      hidden(true);
      takeBack(`That face no longer counts as ${match.name} in this search.`, () => {
        hidden(false);
        undone();
      });
    } else if (
      await rejectFace(person.saved, hit, match.face, () => {
        hidden(false);
        undone();
        this.isStale = true;
        this.settle();
      })
    ) {
      hidden(true);
    }
  }

  original(match, hit) {
    const known = this.view.answer.hits.find((other) => other.photo.id === hit.photo.id);
    return known.matches.find((other) => other.face === match.face && other.person === match.person);
  }

  async settle() {
    if (!this.isStale || document.getElementById("viewer")) return;
    this.isStale = false;
    await this.view.search();
  }
}
