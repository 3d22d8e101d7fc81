// Which view is shown, the token, and what all views share.

import { go, photoInAddress, read } from "./address.js";
import { api, onTokenNeeded } from "./api.js";
import { answered } from "./dialogs.js";
import { h, icon, plural } from "./dom.js";
import { selection } from "./gallery/selection.js";
import { addSelectionBar } from "./gallery/selection_bar.js";
import { IndexView } from "./index/index_view.js";
import { listenToRuns, onReconnect, stopListening, watchRun } from "./index/run_events.js";
import { listenForHelp } from "./keys.js";
import { PeopleView } from "./people/people_view.js";
import { PersonPage } from "./people/person_page.js";
import { addPerson, clearQuery } from "./search/query.js";
import { queryValues } from "./search/query_address.js";
import { SearchView } from "./search/search_view.js";
import { toast } from "./toasts.js";
import { trouble } from "./trouble.js";
import { forgetUploads } from "./uploads.js";
import { viewPhoto, Viewer } from "./viewer/viewer.js";

const TITLES = { search: "setnet", people: "People · setnet", person: "Person · setnet", index: "Library · setnet" };
const REFRESH = 3000; // milliseconds between two looks at what an index run has stored
const section = (name) => document.getElementById(`view-${name}`);

let prompting = null;
onTokenNeeded(() => {
  prompting ??= (async () => {
    for (let problem = ""; ;) {
      const token = await answered({
        title: "This library needs a token",
        label: "The token that “setnet serve” printed",
        action: "Enter",
        type: "password",
        dismissible: false,
        problem,
      });
      try {
        await api.begin(token);
        return;
      } catch (error) {
        problem = error.message;
      }
    }
  })().finally(() => {
    prompting = null;
  });
  return prompting;
});

function find(...people) {
  clearQuery();
  for (const person of people) addPerson(person);
  go("search", queryValues());
}

const search = new SearchView(section("search"));
const views = {
  search: (asked) => search.show(asked),
  people: () => people.show(),
  person: () => person.show(),
  index: async (asked) => index.show(await asked),
};
const people = new PeopleView(section("people"), { find, changed: () => search.forget() });
const person = new PersonPage(section("person"), {
  find,
  changed: () => {
    search.forget();
    people.redraw();
  },
});
const index = new IndexView(section("index"), {
  changed: () => refresh(),
  forgotten: async () => {
    clearQuery();
    await forgetUploads();
    return refresh();
  },
});

// A face was named in the large view, and with it the group of that id; or that was undone.
document.addEventListener("people-named", async (/** @type {CustomEvent} */ { detail: group }) => {
  search.named();
  try {
    if (current().name === "people") await (group ? people.left(group) : people.reload());
    else if (current().name === "person") await person.show();
  } catch (error) {
    toast(error.message, "error");
  }
});

async function status() {
  const now = await api.status();
  document.getElementById("library-size").textContent = plural(now.photos, "photo");
  document.getElementById("sign-out").hidden = !now.token;
  document.documentElement.toggleAttribute("data-reads", now.access === "read"); // hides what writes
  return now;
}

async function refresh() {
  const now = await status();
  search.refresh(now);
  if (current().name === "index") index.show(now);
  else if (current().name === "people") await people.show();
}

// While an index run goes on, what it has stored so far is shown.
let looked = 0;
watchRun(async (job, hasEnded) => {
  const isShown = ["search", "index"].includes(current().name); // nothing that is being typed elsewhere is lost
  if (!hasEnded && (job.state !== "running" || !isShown || Date.now() - looked < REFRESH)) return;
  looked = Date.now();
  try {
    await refresh();
  } catch (error) {
    toast(error.message, "error");
  }
});

// "#people/ID" is the page of a person.
function current() {
  const { name, id, path } = read();
  if (name === "people" && id) return { name: "person", id, path };
  return name in views ? { name, path } : { name: "search", path: "search" };
}

let shown = null; // the view that is shown, with the person of it
const failed = h("section", { "aria-label": "Error", hidden: true }); // in place of a view that cannot be shown
document.getElementById("main").append(failed);
onReconnect(() => {
  if (!failed.hidden) show();
});

function fail(name, error) {
  shown = null;
  section(name).hidden = true;
  failed.hidden = false;
  failed.replaceChildren(
    trouble(error, async () => {
      await show();
      listenToRuns();
      failed.querySelector("button")?.focus();
    }),
  );
}

async function show() {
  const { name, id, path } = current();
  Viewer.follow(photoInAddress());
  if (path === shown && name !== "search") {
    followPhoto(name);
    return;
  }
  if (path !== shown) selection.clear();
  document.getElementById("choose-photos").hidden = name !== "search" && name !== "person";
  shown = path;
  document.title = TITLES[name];
  if (name === "person") person.begin(id);
  failed.hidden = true;
  for (const view of Object.keys(views)) section(view).hidden = view !== name;
  for (const link of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("nav [data-view]"))) {
    if (link.dataset.view === name || (link.dataset.view === "people" && name === "person"))
      link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const asked = status();
    await Promise.all([views[name](asked), asked]);
    followPhoto(name);
  } catch (error) {
    fail(name, error);
  }
}

// A photo in the address of a view that has no photos of its own.
function followPhoto(name) {
  if (name === "person") person.photos.followPhoto();
  else if (name !== "search" && photoInAddress() && !Viewer.current) viewPhoto(photoInAddress());
}

async function signOut() {
  await api.end();
  await forgetUploads();
  stopListening();
  location.replace(location.pathname);
}

async function begin() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  const view = given.get("view");
  if (token || view) history.replaceState(null, "", location.pathname + (view ? `#${view}` : ""));
  if (token) {
    try {
      await api.begin(token);
    } catch (error) {
      toast(error.message, "error");
    }
  }
  history.scrollRestoration = "manual"; // the views know better where the photo is that was looked at
  addSelectionBar();
  listenForHelp();
  document.getElementById("sign-out").append(icon("leave"));
  document
    .getElementById("sign-out")
    .addEventListener("click", () => signOut().catch((error) => toast(error.message, "error")));
  // The search goes on where it was left.
  document.querySelector("nav [data-view=search]").addEventListener("click", (event) => {
    event.preventDefault();
    go("search", queryValues());
  });
  addEventListener("hashchange", show);
  await show();
  listenToRuns();
  document.documentElement.dataset.ready = "true";
}

begin();
