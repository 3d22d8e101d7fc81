// Dialogs for one decision or one line of text; each returns a promise.

import { h } from "./dom.js";

function show(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

export async function confirmed({ title, text, action, danger = false }) {
  return Boolean(await decided({ title, content: [h("p", {}, text)], yes: action, danger, cautious: true }));
}

// Shows anything with two answers, or with `other` three; resolves to that of `answer` for `yes`, to "other", or to what the dialog was closed with, else to null.
export function decided({
  title,
  content,
  yes,
  no = "Cancel",
  other = null,
  danger = false,
  cautious = false,
  opened = (_dialog) => {},
  answer = () => "yes",
}) {
  return new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { class: "sheet small", "aria-labelledby": "dialog-title" },
      h("header", {}, h("h2", { id: "dialog-title" }, title)),
      h("div", { class: "body" }, content),
      h(
        "footer",
        {},
        no &&
          h("button", { type: "button", class: "button", onclick: () => dialog.close(""), autofocus: cautious }, no),
        other && h("button", { type: "button", class: "button", onclick: () => dialog.close("other") }, other),
        h(
          "button",
          {
            type: "button",
            class: `button ${danger ? "danger" : "primary"}`,
            onclick: () => dialog.close(answer()),
            autofocus: !cautious,
          },
          yes,
        ),
      ),
    );
    dialog.addEventListener("close", () => resolve(dialog.returnValue || null));
    show(dialog);
    opened(dialog);
  });
}

// Asks for a line of text, or with `options` for one of them; resolves to null when cancelled. `problem`: why it is asked again.
export function answered({
  title,
  label,
  action,
  value = "",
  options = null,
  type = "text",
  dismissible = true,
  problem = "",
}) {
  return new Promise((resolve) => {
    const input = options
      ? h(
          "select",
          { id: "dialog-input" },
          options.map((option) => h("option", { value: option }, option)),
        )
      : h("input", { id: "dialog-input", type, value, maxlength: 1000, autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "sheet small", "aria-labelledby": "dialog-title" });
    const send = (event) => {
      event.preventDefault();
      if (input.value.trim()) dialog.close("yes");
    };
    dialog.append(
      h("header", {}, h("h2", { id: "dialog-title" }, title)),
      h(
        "form",
        { class: "body", id: "dialog-form", onsubmit: send },
        problem && h("p", { class: "notice error", role: "alert" }, `${problem[0].toUpperCase()}${problem.slice(1)}.`),
        h("div", { class: "field" }, h("label", { for: "dialog-input" }, label), input),
      ),
      h(
        "footer",
        {},
        dismissible && h("button", { type: "button", class: "button", onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "submit", form: "dialog-form", class: "button primary" }, action),
      ),
    );
    if (!dismissible) dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? input.value.trim() : null));
    show(dialog);
    input.focus();
    if (!options) input.select();
  });
}
