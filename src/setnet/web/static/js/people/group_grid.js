// A grid of groups that is loaded page by page; what is named or hidden leaves it in place.

import { api } from "../api.js";
import { h } from "../dom.js";
import { toast } from "../toasts.js";

export class GroupGrid {
  // which: as GET /groups takes it; tile(group): the element of a group.
  constructor(which, tile) {
    this.which = which;
    this.tile = tile;
    this.list = h("ul", { class: "groups" });
    this.more = h("button", { type: "button", class: "button", hidden: true, onclick: () => this.next() }, "Show more");
    this.element = h("div", { class: "group-grid" }, this.list, this.more);
  }

  get size() {
    return this.list.children.length;
  }

  async load() {
    const page = await api.groups(this.which);
    this.list.replaceChildren(...page.groups.map(this.tile));
    this.turned(page);
  }

  async next() {
    this.more.disabled = true;
    try {
      const page = await api.groups({ ...this.which, cursor: this.cursor });
      const known = new Set([...this.list.children].map((element) => element.dataset.group));
      const fresh = page.groups.filter((group) => !known.has(group.id)).map(this.tile);
      this.list.append(...fresh);
      fresh[0]?.querySelector("button, input")?.focus();
      this.turned(page);
    } catch (error) {
      toast(error.message, "error");
    }
    this.more.disabled = false;
  }

  turned(page) {
    this.cursor = page.cursor;
    this.more.hidden = !page.cursor;
  }

  // Takes a group out; whoever names by keyboard goes on with the next one.
  drop(id) {
    const element = this.list.querySelector(`[data-group="${id}"]`);
    if (!element) return;
    const next = element.nextElementSibling ?? element.previousElementSibling;
    const goOn = () => next?.querySelector("input, .button")?.focus({ preventScroll: true });
    const dialog = document.querySelector("dialog[open]");
    const isHere = element.contains(document.activeElement) || document.activeElement === document.body;
    element.remove();
    if (dialog) dialog.addEventListener("close", goOn);
    else if (isHere) goOn();
    if (!this.size && this.cursor) this.load();
  }
}
