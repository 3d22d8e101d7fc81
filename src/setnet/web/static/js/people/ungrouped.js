// Faces that are not grouped yet: an index run that goes on, or grouping that can be started here.

import { api } from "../api.js";
import { h, plural } from "../dom.js";
import { toast } from "../toasts.js";

export class Ungrouped {
  constructor(done) {
    this.done = done;
    this.text = h("p", { role: "status" });
    this.start = h("button", { type: "button", class: "button compact", onclick: () => this.begin() }, "Group them now");
    this.element = h("div", { class: "notice ungrouped", hidden: true }, this.text, this.start);
  }

  draw(faces) {
    if (this.events) return;
    this.element.hidden = !faces;
    this.start.hidden = false;
    this.text.textContent = `${plural(faces, "face")} ${faces === 1 ? "is" : "are"} not grouped yet.`;
  }

  async begin() {
    try { await api.discover(); } catch (error) { toast(error.message, "error"); return; }
    this.text.textContent = "Grouping the faces…";
    this.start.hidden = true;
    this.events = api.indexEvents();
    this.events.addEventListener("index", (event) => {
      const job = JSON.parse(event.data);
      if (job.state === "running" || job.state === "stopping") return;
      this.events.close();
      this.events = null;
      if (job.error) toast(job.error, "error");
      this.done();
    });
  }
}
