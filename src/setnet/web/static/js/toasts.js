// Short messages at the foot of the page, with Undo where a change has one.

import { api } from "./api.js";
import { active, h } from "./dom.js";

const region = document.getElementById("toasts");
const SECONDS = { "": 3.5, error: 8, warn: 12, undo: 12 };
let latest = null; // the last change that can still be undone from here

// What is outside an open dialog can be neither seen nor pressed: the messages go into it.
const settle = () => ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(region);
document.addEventListener("close", settle, true);

function show(element, kind, gone = () => {}) {
  settle();
  region.append(element);
  let timer;
  const leave = () => {
    clearTimeout(timer);
    if (!element.isConnected) return;
    element.remove();
    gone();
  };
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(leave, SECONDS[kind] * 1000);
  };
  for (const pause of ["pointerenter", "focusin"]) element.addEventListener(pause, () => clearTimeout(timer));
  for (const goOn of ["pointerleave", "focusout"]) element.addEventListener(goOn, wait);
  wait();
  return leave;
}

export function toast(text, kind = "") {
  show(h("div", { class: `toast ${kind}` }, text), kind);
}

// A message with Undo; back() takes the change back.
export function takeBack(text, back) {
  latest?.leave();
  const undo = async () => {
    mine.leave();
    try {
      await back();
      toast("Undone.");
    } catch (error) {
      toast(error.message, "error");
    }
  };
  const element = h(
    "div",
    { class: "toast" },
    h("span", {}, text),
    h("button", { type: "button", class: "undo", onclick: undo }, "Undo"),
  );
  const mine = {
    undo,
    leave: show(element, "undo", () => {
      if (latest === mine) latest = null;
    }),
  };
  latest = mine;
}

// `changes` is a number in the journal, or several in their order; `undone` is called when they are taken back.
export function undoable(text, changes, undone) {
  takeBack(text, async () => {
    for (const change of [changes].flat().reverse()) await api.undo(change);
    await undone();
  });
}

addEventListener("keydown", (event) => {
  const typing = active()?.closest("input, textarea, select");
  if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.shiftKey || typing || !latest)
    return;
  event.preventDefault();
  latest.undo();
});
