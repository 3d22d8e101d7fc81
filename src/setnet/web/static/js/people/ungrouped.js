// Faces that are not grouped yet: grouping that can be started here, or the run that goes on.

import { api } from "../api.js";
import { h, plural } from "../dom.js";
import { expectRun, isGrouping, isRunning, watchRun } from "../index/run_events.js";
import { toast } from "../toasts.js";

export class Ungrouped {
  constructor() {
    this.faces = 0;
    this.job = null;
    this.text = h("p", { role: "status" });
    this.start = h(
      "button",
      { type: "button", class: "button compact", "data-writes": true, onclick: () => this.begin() },
      "Group them now",
    );
    this.element = h("div", { class: "notice ungrouped", hidden: true }, this.text, this.start);
    watchRun((job, hasEnded) => {
      if (hasEnded && isGrouping(this.job) && job.error) toast(job.error, "error");
      this.job = job;
      this.draw(this.faces);
    });
  }

  draw(faces) {
    this.faces = faces;
    this.element.hidden = !faces;
    this.start.hidden = isRunning(this.job);
    const waiting = `${plural(faces, "face")} ${faces === 1 ? "is" : "are"} not grouped yet.`;
    if (!isRunning(this.job)) this.text.textContent = waiting;
    else
      this.text.textContent = isGrouping(this.job)
        ? "Grouping the faces…"
        : `${waiting} That is done again and again while the index run goes on.`;
  }

  async begin() {
    expectRun();
    try {
      this.job = await api.discover();
    } catch (error) {
      if (error.status !== 409) {
        toast(error.message, "error");
        return;
      }
      this.job = (await api.status()).index; // a run began a moment ago
    }
    this.draw(this.faces);
  }
}
