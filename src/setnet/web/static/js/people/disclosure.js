// A grid of groups behind a heading: it is loaded when it is opened, and not there while it would be empty.

import { h, icon } from "../dom.js";
import { toast } from "../toasts.js";

export class Disclosure {
  constructor(title, grid) {
    this.grid = grid;
    this.count = h("span", { class: "muted" });
    this.element = h("details", { class: "disclosure", hidden: true },
      h("summary", {}, h("h2", {}, title), this.count, h("span", { class: "turn" }, icon("down"))), grid.element);
    this.element.addEventListener("toggle", () => this.opened());
  }

  async opened() {
    if (!this.element.open) return;
    try { await this.grid.load(); } catch (error) { toast(error.message, "error"); }
  }

  async refresh(total) {
    this.element.hidden = !total;
    this.count.textContent = total.toLocaleString();
    if (this.element.open && this.grid.isEmpty) await this.opened();
  }
}
