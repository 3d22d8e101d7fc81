// "?" shows what the keys do.

import { active, h } from "./dom.js";
import { decided } from "./dialogs.js";

const KEYS = {
  "/": "to the search field",
  "← → ↑ ↓": "to the next photo",
  Enter: "open the photo",
  x: "select the photo; Shift and a click: all between",
  "+ − 0": "in the large view: larger, smaller, whole",
  "y n s": "answer “Is this Anna too?”",
  Esc: "close, or select none",
  "Ctrl Z": "undo, while the message is there",
};

export function listenForHelp() {
  addEventListener("keydown", (event) => {
    if (event.key !== "?" || active()?.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    const lines = Object.entries(KEYS).flatMap(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]);
    decided({ title: "Keys", content: [h("dl", { class: "keys" }, lines)], yes: "Close", no: null });
  });
}
