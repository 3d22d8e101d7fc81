// Tabs: arrows move between them, the panel of the chosen one is shown.

import { h } from "../dom.js";

export class Tabs {
  // parts: {key: [title, element]}
  constructor(label, parts) {
    this.tabs = {};
    this.panels = {};
    for (const [key, [title, element]] of Object.entries(parts)) {
      this.tabs[key] = h(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${key}`,
          "aria-controls": `panel-${key}`,
          onclick: () => this.choose(key),
        },
        title,
        h("span", { class: "number" }),
      );
      this.panels[key] = h("div", { role: "tabpanel", id: `panel-${key}`, "aria-labelledby": `tab-${key}` }, element);
    }
    const keys = Object.keys(parts);
    const list = h(
      "div",
      {
        class: "tabs",
        role: "tablist",
        "aria-label": label,
        onkeydown: (event) => {
          const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
          if (!step) return;
          const next = keys[(keys.indexOf(this.chosen) + step + keys.length) % keys.length];
          this.choose(next);
          this.tabs[next].focus();
        },
      },
      Object.values(this.tabs),
    );
    this.element = h("div", {}, list, Object.values(this.panels));
    this.choose(keys[0]);
  }

  choose(key) {
    this.chosen = key;
    for (const [name, tab] of Object.entries(this.tabs)) {
      tab.setAttribute("aria-selected", String(name === key));
      tab.tabIndex = name === key ? 0 : -1;
      this.panels[name].hidden = name !== key;
    }
  }

  count(key, number) {
    this.tabs[key].lastChild.textContent = number.toLocaleString();
  }
}
