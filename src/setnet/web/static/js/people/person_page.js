// The page of one person: who they are, their photos by date, the faces they are recognised by, and guesses to confirm.

import { go } from "../address.js";
import { api } from "../api.js";
import { h, plural } from "../dom.js";
import { listed } from "../gallery/matches.js";
import { called, loadSaved } from "../saved_people.js";
import { ExampleFaces } from "./example_faces.js";
import { GroupActions } from "./group_actions.js";
import { PersonHead } from "./person_head.js";
import { PersonPhotos } from "./person_photos.js";
import { Suggestions } from "./suggestions.js";
import { Tabs } from "./tabs.js";

const MOST_TOGETHER = 8;

export class PersonPage {
  // act: {changed() when people changed, find(...people), each {saved} or {group}, to search}
  constructor(section, act) {
    this.act = act;
    this.section = section;
    const reload = () => this.changed();
    const groups = new GroupActions({ left: reload, reload, search: act.find });
    this.head = new PersonHead({
      changed: reload,
      find: (saved) => act.find({ saved }),
      moved: (id) => this.moved(id),
    });
    this.suggestions = new Suggestions({ answered: reload, reload, open: (group) => groups.open(group) });
    this.photos = new PersonPhotos({ changed: reload });
    this.examples = new ExampleFaces({ changed: reload });
    this.tabs = new Tabs("About this person", {
      photos: ["Photos", this.photos.element],
      examples: ["Example faces", this.examples.element],
    });
    this.empty = h(
      "div",
      { class: "empty", hidden: true },
      h("h2", {}, "Nobody is here any more"),
      h("p", {}, "They were removed, or became one with another person."),
      h("a", { class: "button primary", href: "#people" }, "People"),
    );
    this.together = h("p", { class: "together", hidden: true });
    this.content = h("div", {}, this.head.element, this.together, this.suggestions.element, this.tabs.element);
    section.append(this.empty, this.content);
  }

  // Nothing of the person before is left to be seen or pressed while the next one is loaded.
  begin(id) {
    if (id === this.id) return;
    this.id = id;
    this.content.hidden = true;
    this.tabs.choose("photos");
    this.together.hidden = true;
    this.photos.clear();
    scrollTo({ top: 0 });
  }

  async show() {
    try {
      await this.load();
    } catch (error) {
      if (error.status !== 404) throw error;
      this.empty.hidden = false;
      this.content.hidden = true;
    }
  }

  async load() {
    const { id } = this;
    const [person, { examples }] = await Promise.all([api.person(id), api.examples(id), loadSaved()]);
    if (id !== this.id) return;
    this.empty.hidden = true;
    this.content.hidden = false;
    if (!this.section.hidden) document.title = `${person.name} · setnet`;
    this.head.draw(person);
    this.examples.draw(person, examples);
    this.tabs.count("examples", examples.length);
    const [total] = await Promise.all([this.photos.load(person), this.suggestions.load(id)]);
    if (id !== this.id) return;
    this.tabs.count("photos", total);
    this.photos.followPhoto();
    this.drawTogether(id).catch(() => {}); // it is beside what was asked for
    this.head.count(`${plural(total, "photo")} · ${plural(examples.length, "example face")}`);
  }

  // Who else is in the photos of this person, each a search for both or for all.
  async drawTogether(id) {
    const { together } = await api.together(id, MOST_TOGETHER);
    if (id !== this.id) return;
    const links = together.map(({ people, photos }) => {
      const all = people.map(called).filter(Boolean);
      const others = all.filter((one) => one.id !== id).map((one) => one.name);
      const look = () => this.act.find(...all.map((one) => ({ saved: one })));
      return h(
        "button",
        { type: "button", class: "pill", onclick: look },
        `${listed(others)} (${photos.toLocaleString()})`,
      );
    });
    this.together.hidden = !links.length;
    this.together.replaceChildren("Together with ", ...links);
  }

  async changed() {
    await this.show();
    this.act.changed();
  }

  // The person is another one now, or nobody: that page is shown instead.
  async moved(id) {
    await loadSaved();
    this.act.changed();
    go(id ? `people/${id}` : "people");
  }
}
