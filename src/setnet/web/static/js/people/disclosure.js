// A grid of groups behind a heading: it is loaded when it is opened, and not there while it would be empty.

import { h, icon } from "../dom.js";
import { toast } from "../toasts.js";

export class Disclosure {
  constructor(title, grid) {
    this.grid = grid;
    this.number = h("span", { class: "muted" });
    this.element = h(
      "details",
      { class: "disclosure", hidden: true },
      h("summary", {}, h("h2", {}, title), this.number, h("span", { class: "turn" }, icon("down"))),
      grid.element,
    );
    this.element.addEventListener("toggle", () => this.reload());
  }

  async reload() {
    if (!this.element.open) return;
    try {
      await this.grid.load();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  // Says how many there are; one that came is shown.
  async count(total) {
    this.element.hidden = !total;
    this.number.textContent = total.toLocaleString();
    if (total > this.grid.size && !this.grid.cursor) await this.reload();
  }
}
