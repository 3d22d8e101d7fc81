// Which view is shown, the token, and what all views share.

import { api, onTokenNeeded } from "./api.js";
import { answered } from "./dialogs.js";
import { CollectView } from "./collect_view.js";
import { plural, toast } from "./dom.js";
import { IndexView } from "./index_view.js";
import { PeopleView } from "./people_view.js";
import { SearchView } from "./search_view.js";

const VIEWS = ["search", "people", "index", "collect"];
const section = (name) => document.getElementById(`view-${name}`);

let prompting = null;
onTokenNeeded(() => {
  prompting ??= (async () => {
    for (;;) {
      const token = await answered({ title: "This library needs a token", label: "The token that `setnet serve` printed", action: "Enter", type: "password", dismissible: false });
      try { await api.begin(token); return; } catch (error) { toast(error.message, "error"); }
    }
  })().finally(() => { prompting = null; });
  return prompting;
});

const search = new SearchView(section("search"));
const people = new PeopleView(section("people"), {
  find: (person) => { search.findSaved(person); location.hash = "#search"; },
  forgotten: () => refresh(),
});
const index = new IndexView(section("index"), { changed: () => refresh() });
const collect = new CollectView(section("collect"));

async function status() {
  const now = await api.status();
  document.getElementById("library-size").textContent = plural(now.photos, "photo");
  document.querySelector("nav [data-view=collect]").hidden = now.collect === null;
  return now;
}

async function refresh() {
  const now = await status();
  search.refresh(now);
  if (current() === "index") index.show(now);
}

const current = () => (VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : "search");

async function show() {
  const name = current();
  document.title = { search: "setnet", people: "People · setnet", index: "Index · setnet", collect: "Annotate · setnet" }[name];
  for (const view of VIEWS) section(view).hidden = view !== name;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  try {
    const now = await status();
    if (name === "search") await search.show(now);
    else if (name === "people") await people.show();
    else if (name === "collect") await collect.show(now);
    else index.show(now);
  } catch (error) { toast(error.message, "error"); }
}

async function begin() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("token");
  const view = given.get("view");
  if (token || view) history.replaceState(null, "", location.pathname + (view ? `#${view}` : ""));
  if (token) {
    try { await api.begin(token); } catch (error) { toast(error.message, "error"); }
  }
  addEventListener("hashchange", show);
  await show();
  document.documentElement.dataset.ready = "true";
}

begin();
