// A small panel at a button, at the foot of the screen on a phone; a click elsewhere or Esc closes it.

import { h } from "./dom.js";
import { isNarrow } from "./device.js";

const MARGIN = 8;

function place(panel, anchor) {
  if (isNarrow()) return; // the style sheet puts it at the foot
  const at = anchor.getBoundingClientRect();
  const left = Math.min(at.left, innerWidth - panel.offsetWidth - MARGIN);
  const below = at.bottom + MARGIN + panel.offsetHeight <= innerHeight;
  Object.assign(panel.style, {
    left: `${Math.max(left, MARGIN)}px`,
    top: `${below ? at.bottom + 6 : Math.max(MARGIN, at.top - panel.offsetHeight - 6)}px`,
  });
}

// Shows `content` at `anchor`; returns the function that closes it.
export function popup(anchor, label, content) {
  const panel = h("div", { class: "popup", popover: "auto", role: "dialog", "aria-label": label }, content);
  const close = () => {
    if (panel.matches(":popover-open")) panel.hidePopover();
  };
  panel.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    anchor.setAttribute("aria-expanded", "false");
    const lost = panel.contains(document.activeElement) || document.activeElement === document.body;
    panel.remove();
    if (lost && anchor.isConnected) anchor.focus({ preventScroll: true });
  });
  document.body.append(panel);
  panel.showPopover();
  place(panel, anchor);
  anchor.setAttribute("aria-expanded", "true");
  (panel.querySelector("[autofocus]") ?? panel.querySelector("input, button, select"))?.focus({ preventScroll: true });
  return close;
}
