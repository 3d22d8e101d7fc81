// The one way to say that something failed: what happened, and Retry.

import { h } from "./dom.js";

export function trouble(error, retry) {
  const again = async (event) => {
    event.target.disabled = true;
    await retry();
    event.target.disabled = false;
  };
  return h(
    "div",
    { class: "empty trouble", role: "alert" },
    h("h2", {}, error.status === 0 ? "No connection to setnet" : "That did not work"),
    h("p", {}, `${error.message[0].toUpperCase()}${error.message.slice(1)}`),
    h("button", { type: "button", class: "button primary", onclick: again }, "Retry"),
  );
}
