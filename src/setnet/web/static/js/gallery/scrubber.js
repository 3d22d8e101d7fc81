// The years along the edge of a long list: drag, click or use the arrow keys to go to a month.

import { h } from "../dom.js";

const LEAST_SCREENS = 3; // a shorter list needs none
const BETWEEN = 22; // pixels between two labels

export class Scrubber {
  constructor(gallery) {
    this.gallery = gallery;
    this.bubble = h("output", { class: "bubble", hidden: true });
    this.thumb = h("div", { class: "thumb" }, this.bubble);
    this.years = h("div", { class: "years", "aria-hidden": "true" });
    this.element = h(
      "div",
      {
        class: "scrubber",
        role: "slider",
        tabindex: "0",
        "aria-label": "Date",
        "aria-orientation": "vertical",
        "aria-valuemin": "0",
        hidden: true,
        onpointerdown: (event) => this.grab(event),
        onpointermove: (event) => {
          if (this.isHeld) this.drag(event);
        },
        onpointerup: () => this.drop(),
        onpointercancel: () => this.drop(),
        onkeydown: (event) => this.key(event),
      },
      this.years,
      this.thumb,
    );
  }

  // The beginnings of the months, in pixels of the list.
  begin() {
    const starts = [];
    for (const row of this.gallery.layout.sections[0]?.rows ?? [])
      for (const label of row.labels ?? []) starts.push({ ...label, y: row.top });
    this.starts = starts;
    const { height } = this.gallery.layout;
    this.element.hidden = height < LEAST_SCREENS * innerHeight || starts.length < 2;
    this.element.setAttribute("aria-valuemax", String(Math.max(0, starts.length - 1)));
    if (this.element.hidden) return;
    const room = this.element.clientHeight;
    let last = -Infinity;
    let before = "";
    const years = [];
    for (const start of starts) {
      const year = start.name.match(/\d{4}/)?.[0] ?? "";
      const at = (start.y / height) * room;
      if (year === before || at - last < BETWEEN || at > room - 8) continue;
      [last, before] = [at, year];
      years.push(h("span", { style: { top: `${at}px` } }, year || "?"));
    }
    this.years.replaceChildren(...years);
    this.follow();
  }

  get now() {
    // the month at the top of the screen
    const from = -this.gallery.top + innerHeight / 4;
    let number = 0;
    while (number + 1 < this.starts.length && this.starts[number + 1].y <= from) number += 1;
    return number;
  }

  follow() {
    if (this.element.hidden || !this.starts?.length) return;
    const { layout, top } = this.gallery;
    const share = Math.min(Math.max(-top / Math.max(1, layout.height - innerHeight), 0), 1);
    this.thumb.style.top = `${share * 100}%`;
    const month = this.starts[this.now];
    this.bubble.textContent = month.name;
    this.element.setAttribute("aria-valuenow", String(this.now));
    this.element.setAttribute("aria-valuetext", month.name);
    const hasMoved = this.seen !== undefined && this.seen !== scrollY; // photos that come in are no reason to show it
    this.seen = scrollY;
    if (!hasMoved) return;
    this.element.classList.add("is-moving");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.element.classList.remove("is-moving"), 1500);
  }

  grab(event) {
    this.isHeld = true;
    this.element.setPointerCapture(event.pointerId);
    this.bubble.hidden = false;
    this.drag(event);
    event.preventDefault();
  }

  drag(event) {
    const at = this.element.getBoundingClientRect();
    const share = Math.min(Math.max((event.clientY - at.top) / at.height, 0), 1);
    this.to(share * (this.gallery.layout.height - innerHeight));
  }

  drop() {
    this.isHeld = false;
    this.bubble.hidden = true;
  }

  to(y) {
    scrollTo({ top: Math.max(0, scrollY + this.gallery.top + y), behavior: "instant" });
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, PageDown: 12, PageUp: -12 }[event.key];
    const to =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? this.starts.length - 1
          : step && Math.min(Math.max(this.now + step, 0), this.starts.length - 1);
    if (to === undefined || Number.isNaN(to)) return;
    event.preventDefault();
    this.to(to ? this.starts[to].y - innerHeight / 4 + 1 : 0);
  }
}
