// Which view is shown, the token, and what all views share.

import { api, onTokenNeeded } from "./api.js";
import { answered } from "./dialogs.js";
import { CollectView } from "./collect_view.js";
import { plural } from "./dom.js";
import { IndexView } from "./index_view.js";
import { PeopleView } from "./people/people_view.js";
import { PersonPage } from "./people/person_page.js";
import { addPerson, query } from "./search/query.js";
import { SearchView } from "./search/search_view.js";
import { toast } from "./toasts.js";

const TITLES = { search: "setnet", people: "People · setnet", person: "Person · setnet", index: "Index · setnet", collect: "Annotate · setnet" };
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

function find(person) {
  query.people = [];
  addPerson(person);
  location.hash = "#search";
}

const search = new SearchView(section("search"));
const views = {
  search: (now) => search.show(now),
  people: () => people.show(),
  person: () => person.show(),
  index: (now) => index.show(now),
  collect: (now) => collect.show(now),
};
const people = new PeopleView(section("people"), { find, changed: () => search.forget(), forgotten: () => { query.people = []; return refresh(); } });
const person = new PersonPage(section("person"), { find, changed: () => { search.forget(); people.redraw(); } });
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
  if (current().name === "index") index.show(now);
  else if (current().name === "people") await people.show();
}

// "#people/ID" is the page of a person.
function current() {
  const [name, id] = location.hash.slice(1).split("/");
  if (name === "people" && id) return { name: "person", id: decodeURIComponent(id) };
  return { name: name in views ? name : "search" };
}

async function show() {
  const { name, id } = current();
  document.title = TITLES[name];
  if (name === "person") person.begin(id);
  for (const view of Object.keys(views)) section(view).hidden = view !== name;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === name || (link.dataset.view === "people" && name === "person")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    await views[name](await status());
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
