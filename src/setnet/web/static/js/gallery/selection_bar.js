// What can be done with the chosen photos.

import { urls } from "../api.js";
import { Press } from "../device.js";
import { h, icon, iconButton, plural } from "../dom.js";
import { nameFaces } from "../naming.js";
import { popup } from "../popup.js";
import { say } from "../search/labels.js";
import { toast } from "../toasts.js";
import { selection } from "./selection.js";

const MOST = 500; // photos in one archive; their ids go into its address

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // not on addresses that a browser does not trust
    const field = h("textarea", { class: "visually-hidden", value: text });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

const nameOf = ({ photo }) => photo.split(/[\\/]/).at(-1);

// Hands the files to the browser's share sheet, which only pages over HTTPS or on this machine have.
async function share() {
  try {
    const files = await Promise.all(
      selection.photos.map(async (photo) => {
        const blob = await (await fetch(urls.file(photo))).blob();
        return new File([blob], nameOf(photo), { type: blob.type });
      }),
    );
    await navigator.share({ files });
  } catch (error) {
    if (error.name !== "AbortError") toast(`The browser did not share these photos: ${error.message}`, "error");
  }
}

async function copyLink() {
  if (await copied(location.href)) toast("Link copied.");
  else toast("The browser did not let the link be copied.", "error");
}

async function copyPaths() {
  const paths = [...new Set(selection.photos.map((photo) => photo.photo))];
  if (await copied(paths.join("\n"))) toast(`${plural(paths.length, "path")} copied.`);
  else toast("The browser did not let the paths be copied.", "error");
}

const news = () => document.dispatchEvent(new CustomEvent("people-named", { detail: null }));

// What can be said of all the photos at once: that somebody found in them is or is not there, or who their only face is.
function sayings() {
  const found = new Map(); // id of a person -> them, with their faces
  for (const { photo, matches } of selection.hits)
    for (const { saved, face, sure } of matches) {
      if (!saved || face === null) continue;
      if (!found.has(saved.id)) found.set(saved.id, { saved, all: [], guesses: [] });
      const one = found.get(saved.id);
      one.all.push({ photo: photo.id, face });
      if (sure === false) one.guesses.push({ photo: photo.id, face });
    }
  const alike = selection.hits.filter(({ matches }) => !matches.length).map(({ photo }) => photo); // of stacks
  const single = selection.photos.filter(({ faces }) => faces?.length === 1).map(({ id }) => ({ photo: id, face: 0 }));
  return [
    ...[...found.values()].flatMap(({ saved, all, guesses }) => [
      guesses.length && { text: `This is ${saved.name}`, act: () => say("confirm", saved, { faces: guesses }, news) },
      { text: `Not ${saved.name}`, act: () => say("reject", saved, { faces: all, alike }, news) },
    ]),
    single.length && { text: "This is…", act: () => nameFaces(single, news) },
  ].filter(Boolean);
}

function who(event) {
  const item = ({ text, act }) => {
    const call = async () => {
      close();
      await act();
      selection.clear();
      news();
    };
    return h("button", { type: "button", class: "menu-item", onclick: call }, text);
  };
  const close = popup(event.currentTarget, "Who is in them", sayings().map(item));
}

export function addSelectionBar() {
  const count = h("b", { role: "status" });
  const download = h("a", { class: "button compact primary", download: "" }, icon("download"), "Download");
  const copy = h(
    "button",
    { type: "button", class: "button compact paths", onclick: copyPaths },
    icon("file"),
    "Copy paths",
  );
  const switcher = document.getElementById("choose-photos"); // where nothing can be pointed at
  switcher.addEventListener("click", () => {
    if (selection.isOn) selection.clear();
    else selection.begin();
  });
  const canShare = Boolean(navigator.canShare?.({ files: [new File([], "a.jpg", { type: "image/jpeg" })] }));
  const [words, act] = canShare ? ["Share", share] : ["Copy link", copyLink];
  const send = h("button", { type: "button", class: "button compact", onclick: act }, icon("share"), words);
  const people = h(
    "button",
    {
      type: "button",
      class: "button compact",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      "data-writes": true,
      onclick: who,
    },
    icon("people"),
    "Who?",
  );
  const bar = h(
    "div",
    { class: "selection", role: "toolbar", "aria-label": "Selected photos", hidden: true },
    count,
    download,
    people,
    copy,
    send,
    iconButton("close", "Select none", () => selection.clear()),
  );
  document.getElementById("main").append(bar);
  selection.onChange(() => {
    const { photos } = selection;
    bar.hidden = !selection.isOn;
    document.body.classList.toggle("is-choosing", selection.isOn);
    switcher.setAttribute("aria-pressed", String(selection.isOn));
    count.textContent = photos.length ? `${photos.length.toLocaleString()} selected` : `${Press()} photos`;
    const isTooMuch = photos.length > MOST;
    copy.disabled = !photos.length;
    people.hidden = !sayings().length;
    send.disabled = canShare && !photos.length;
    download.title = isTooMuch ? `At most ${MOST} at once` : "";
    if (isTooMuch || !photos.length) download.removeAttribute("href");
    else download.href = photos.length === 1 ? urls.download(photos[0]) : urls.archive(photos);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selection.isOn && !document.querySelector("dialog[open], :popover-open"))
      selection.clear();
  });
}
