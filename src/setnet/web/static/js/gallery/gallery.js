// A gallery of any length: only what is on the screen and a screen around it is in the page.

import { isNarrow } from "../device.js";
import { h, icon, iconButton } from "../dom.js";
import { between, justified, layOut, ratio } from "./layout.js";
import { called } from "./matches.js";
import { selection } from "./selection.js";
import { blankTile, tileOf } from "./tile.js";

const HEIGHT = [240, 150]; // of a row: on a desktop, on a phone
const keyOf = (section) => section.group?.key ?? "";
const gapOf = () => (isNarrow() ? 4 : 6);

export class Gallery {
  // Groups: [{key, title, note, isFolded, byMonth, hits}]; a hit is {photo, matches: [{name, sure, box, face, person, quiet}], alike}, or undefined
  // when it is not loaded: then need(first, last) of those on the screen is called, counted over all groups.
  // `flow`: groups are months that follow each other in the same rows. moved(): what is on the screen changed.
  constructor({
    open,
    reject = () => {},
    fold = (_group) => {},
    tick = (_group) => {},
    need = (_first, _last) => {},
    moved = () => {},
    height = HEIGHT,
    flow = false,
  }) {
    this.need = need;
    this.moved = moved;
    this.height = height;
    this.flow = flow;
    this.act = { open, reject, fold, tick, choose: (hit, event) => this.choose(hit, event) };
    this.element = h("div", { class: "gallery" });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.groups = [];
    this.layout = { sections: [], height: 0 };
    this.drawn = new Map(); // section -> {element, lines}
    this.width = 0;
    new ResizeObserver(() => {
      if (this.element.clientWidth && this.element.clientWidth !== this.width) this.show(this.groups);
    }).observe(this.element);
    let isAsked = false;
    const soon = () => {
      if (isAsked || !this.element.offsetParent) return;
      isAsked = true;
      requestAnimationFrame(() => {
        isAsked = false;
        this.draw();
      });
    };
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    selection.onChange(() => this.mark());
  }

  show(groups) {
    this.width = this.element.clientWidth;
    this.groups = groups;
    let from = 0;
    for (const group of groups) {
      group.from = from;
      from += group.hits.length;
    }
    if (!this.width) return;
    for (const waiting of this.element.querySelectorAll(".is-skeleton")) waiting.remove();
    const anchor = this.anchor();
    this.layout = layOut(groups, {
      width: this.width,
      target: this.height[isNarrow() ? 1 : 0],
      gap: gapOf(),
      flow: this.flow,
    });
    this.element.style.height = `${this.layout.height}px`;
    if (anchor) this.settle(anchor);
    this.draw();
  }

  clear() {
    this.groups = [];
    this.layout = { sections: [], height: 0 };
    this.drawn.clear();
    this.element.style.height = "";
    this.element.replaceChildren();
  }

  get top() {
    return this.element.getBoundingClientRect().top;
  }

  // The first photo on the screen and where it is; null while the beginning of the list is.
  anchor() {
    if (this.top > 0 || !this.element.offsetParent) return null;
    const from = -this.top;
    for (const section of between(this.layout.sections, from, from)) {
      const [row] = between(section.rows, from - section.top, Infinity);
      if (row)
        return {
          id: row.items[0].group.hits[row.items[0].index]?.photo.id,
          at: row.items[0].group.from + row.items[0].index,
          y: section.top + row.top,
        };
    }
    return null;
  }

  settle(anchor) {
    const found = this.find((item, hit) =>
      anchor.id ? hit?.photo.id === anchor.id : item.group.from + item.index === anchor.at,
    );
    if (found && found.y !== anchor.y) scrollBy({ top: found.y - anchor.y, behavior: "instant" });
  }

  find(test) {
    for (const section of this.layout.sections) {
      for (const row of section.rows) {
        const item = row.items.find((one) => test(one, one.group.hits[one.index]));
        if (item) return { y: section.top + row.top, height: row.height, item };
      }
    }
    return null;
  }

  draw() {
    if (!this.element.offsetParent) return;
    const room = innerHeight;
    const [from, to] = [-this.top - room, -this.top + 2 * room];
    const sections = between(this.layout.sections, from, to);
    const keys = new Set(sections.map(keyOf));
    const before = this.drawn;
    for (const [key, { element }] of before) if (!keys.has(key)) element.remove();
    this.drawn = new Map();
    let [first, last] = [Infinity, -1];
    let previous = null; // the page has them in the order of the screen, for the keyboard and for those who hear it
    for (const section of sections) {
      const key = keyOf(section);
      const kept = before.get(key) ?? { element: h("section", { class: "group" }), lines: new Map() };
      this.drawn.set(key, kept);
      if (!kept.element.isConnected || kept.element.previousSibling !== previous)
        this.element.insertBefore(kept.element, previous ? previous.nextSibling : this.element.firstChild);
      previous = kept.element;
      this.fill(kept, section, from - section.top, to - section.top);
      for (const row of between(section.rows, from + room / 2 - section.top, to - room / 2 - section.top)) {
        for (const { group, index } of row.items)
          if (!group.hits[index]) {
            first = Math.min(first, group.from + index);
            last = Math.max(last, group.from + index);
          }
      }
    }
    if (last >= 0) this.need(first, last);
    this.moved();
  }

  fill(kept, section, from, to) {
    const { element } = kept;
    Object.assign(element.style, { top: `${section.top}px`, height: `${section.bottom - section.top}px` });
    if (section.group?.title) this.head(kept, section.group);
    const before = kept.lines;
    kept.lines = new Map();
    let previous = kept.head ?? null;
    for (const row of between(section.rows, from, to)) {
      const key = this.keyOf(row);
      const line = before.get(key) ?? this.row(row);
      before.delete(key);
      kept.lines.set(key, line);
      line.style.top = `${row.top}px`;
      if (line.parentElement !== element || line.previousSibling !== previous)
        element.insertBefore(line, previous ? previous.nextSibling : element.firstChild);
      previous = line;
    }
    for (const line of before.values()) line.remove();
  }

  head(kept, group) {
    kept.head ??= kept.element.appendChild(h("div", { class: "group-head" }));
    const text = `${group.title}/${group.note}/${group.isFolded}`;
    if (kept.text === text) return;
    kept.text = text;
    const title = [group.title, " ", h("small", {}, group.note)];
    const isFold = group.isFolded !== undefined;
    const fold = {
      type: "button",
      class: "fold",
      "aria-expanded": String(!group.isFolded),
      onclick: () => this.act.fold(group),
    };
    const had = kept.head.contains(document.activeElement);
    kept.head.replaceChildren(
      h(group.isPart ? "h3" : "h2", {}, isFold ? h("button", fold, title, icon("down")) : title),
      isFold
        ? ""
        : iconButton("check", `Select all ${group.title}`, () => this.act.tick(group), { class: "icon-button tick" }),
    );
    if (had) kept.head.querySelector("button")?.focus({ preventScroll: true });
  }

  keyOf(row) {
    return `${this.width}/${row.height}/${row.labels?.map((label) => label.title)}/${row.items.map(
      ({ group, index }) => {
        const hit = group.hits[index];
        return hit
          ? `${hit.photo.id}+${hit.alike?.length ?? 0}:${hit.matches.map((match) => `${match.person}.${match.face}.${called(match)}`)}`
          : `?${group.from + index}`;
      },
    )}`;
  }

  row(row) {
    return h(
      "div",
      { class: "row-of-photos" },
      row.labels?.map(({ title, name, left }, number, all) =>
        h(
          "h2",
          {
            class: "month",
            "aria-label": name,
            style: { left: `${left}px`, maxWidth: `${(all[number + 1]?.left ?? this.width) - left - 6}px` },
          },
          title,
        ),
      ),
      row.items.map(({ group, index, width }) => {
        const hit = group.hits[index];
        return hit ? tileOf(hit, width, row.height, this.act) : blankTile(width, row.height);
      }),
    );
  }

  // Scrolls to a photo and gives it the focus.
  reveal(id) {
    const found = this.find((_, hit) => hit?.photo.id === id);
    if (!found) return;
    const y = this.top + found.y;
    if (y < 160 || y + found.height > innerHeight)
      scrollBy({ top: y - (innerHeight - found.height) / 2, behavior: "instant" });
    this.draw();
    this.element.querySelector(`[data-photo="${id}"] .open`)?.focus({ preventScroll: true });
  }

  // Arrows go to the photo beside, above or below; x selects.
  key(event) {
    const at = event.target.closest(".open");
    const id = at?.closest(".tile").dataset.photo;
    const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!at || event.ctrlKey || event.metaKey || event.altKey || !(direction || event.key === "x")) return;
    event.preventDefault();
    if (!direction) {
      this.choose(
        this.groups.flatMap((group) => group.hits).find((hit) => hit?.photo.id === id),
        event,
      );
      return;
    }
    const all = [...this.element.querySelectorAll(".tile .open")];
    const [dx, dy] = direction;
    const place = (element) => {
      const { left, top, width } = element.getBoundingClientRect();
      return { x: left + width / 2, y: top };
    };
    const here = place(at);
    const beyond = all.map((element) => ({ element, ...place(element) })).filter(({ y }) => (y - here.y) * dy > 4);
    const line = Math.min(...beyond.map(({ y }) => Math.abs(y - here.y)));
    const [nearest] = beyond
      .filter(({ y }) => Math.abs(y - here.y) < line + 4)
      .sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x));
    const next = dx ? all[all.indexOf(at) + dx] : nearest?.element;
    next?.focus();
  }

  // A click chooses one photo, with Shift all between it and the one before.
  choose(hit, event) {
    const hits = this.groups.flatMap((group) => group.hits).filter(Boolean);
    const at = hits.findIndex((other) => other.photo.id === hit.photo.id);
    const on = !selection.has(hit.photo.id);
    const last = event.shiftKey && this.last ? hits.findIndex((other) => other.photo.id === this.last) : -1;
    this.last = hit.photo.id;
    selection.set(last < 0 ? [hit] : hits.slice(Math.min(at, last), Math.max(at, last) + 1), last < 0 ? on : true);
  }

  mark() {
    for (const tile of this.element.querySelectorAll(".tile[data-photo]")) {
      const on = selection.has(tile.dataset.photo);
      tile.classList.toggle("is-chosen", on);
      tile.querySelector(".choose").setAttribute("aria-pressed", String(on));
    }
  }
}

export function skeleton(width) {
  const shapes = Array.from({ length: 14 }, (_, n) => ({ width: [4, 3, 4, 2][n % 4], height: [3, 4, 3, 3][n % 4] }));
  return justified(shapes, width || 800, HEIGHT[isNarrow() ? 1 : 0], gapOf(), ratio)
    .slice(0, 3)
    .map((row) =>
      h(
        "div",
        { class: "row-of-photos is-skeleton", "aria-hidden": "true" },
        row.items.map((shape) =>
          h("div", {
            class: "skeleton",
            style: { width: `${ratio(shape) * row.height}px`, height: `${row.height}px` },
          }),
        ),
      ),
    );
}
