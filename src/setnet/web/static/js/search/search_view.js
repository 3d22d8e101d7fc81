// The search view: the query above, the photos below.

import { api } from "../api.js";
import { debounce, h, plural } from "../dom.js";
import { toast } from "../toasts.js";
import { Filters } from "./filters.js";
import { exampleIn, findFace } from "./find_face.js";
import { Gallery, skeleton } from "./gallery.js";
import { inGroups } from "./matches.js";
import { PeopleBar } from "./people_bar.js";
import { listenForDropsAndPastes } from "./picker.js";
import { addExamples, hide, isHidden, label, needed, onChange, query, request, wanted } from "./query.js";
import { confirmFace, refuseFace } from "./verdicts.js";
import { Viewer } from "./viewer.js";

// The API's hits as {photo, score, matches}; a match's `person` becomes their number in the query.
function hitsOf({ hits, people }) {
  return hits.map(({ score, matches, boxes, ...photo }) => ({ score, photo: { ...photo, faces: boxes.map((box) => ({ box })) },
    matches: matches.map((match) => ({ ...match, person: people.indexOf(match.person), name: match.person })) }));
}

export class SearchView {
  constructor(section) {
    this.bar = new PeopleBar();
    this.filters = new Filters();
    this.summary = h("p", { class: "summary", role: "status" });
    this.notes = h("div");
    this.gallery = new Gallery({ open: (hit) => this.view(hit), reject: (match, hit) => this.reject(match, hit) });
    this.more = h("div", { class: "more" });
    this.answer = null;
    this.status = null;
    section.append(
      h("div", { class: "query" },
        h("div", { class: "query-head" }, h("h1", { id: "search-title" }, "Who are you looking for?")),
        this.bar.cards, this.bar.chips, this.filters.element),
      this.summary, this.notes, this.gallery.element, this.more);
    listenForDropsAndPastes(() => this.bar.cards);
    const soon = debounce(() => this.search(), 90);
    onChange((what) => {
      this.bar.draw();
      this.filters.draw();
      if (what === "hidden") this.draw(); else { if (what === "query") query.hidden.clear(); soon(); }
    });
    new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) this.loadMore(); }, { rootMargin: "900px" }).observe(this.more);
  }

  async show(status) {
    this.status = status;
    this.filters.configure(status);
    await this.bar.load();
    if (!this.answer) await this.search();
  }

  refresh(status) {
    this.status = status;
    this.filters.configure(status);
    this.forget();
  }

  // The people changed: the next time this view is shown, it searches again.
  forget() {
    this.answer = null;
    this.bar.redraw();
  }

  async search() {
    this.aborter?.abort();
    const aborter = new AbortController();
    this.aborter = aborter;
    this.filters.element.hidden = wanted().length === 0;
    const waiting = setTimeout(() => this.wait(), 200);
    try {
      const answer = wanted().length ? await this.find(aborter.signal) : await this.browse();
      if (aborter.signal.aborted) return;
      this.answer = answer;
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
    } finally {
      clearTimeout(waiting);
    }
  }

  async find(signal) {
    const people = wanted();
    const began = performance.now();
    const body = request(); // further pages belong to this query, whatever is being typed meanwhile
    const first = await api.search(body, signal);
    return { people, hits: hitsOf(first), cursor: first.cursor, seconds: first.seconds, searched: first.searched, warnings: first.warnings, totals: first.totals,
      round: performance.now() - began, next: (cursor) => api.search({ ...body, cursor }).then((page) => ({ hits: hitsOf(page), cursor: page.cursor })) };
  }

  async browse() {
    const page = async (cursor) => {
      const found = await api.photos(cursor);
      return { hits: found.photos.map((photo) => ({ photo, matches: [], score: 0 })), cursor: found.cursor };
    };
    return { people: [], warnings: [], next: page, ...(await page(null)) };
  }

  wait() {
    this.gallery.clear();
    this.notes.replaceChildren();
    this.more.replaceChildren();
    this.summary.textContent = "Searching…";
    this.gallery.element.replaceChildren(...skeleton(this.gallery.element.clientWidth));
  }

  fail(error) {
    this.answer = null;
    this.gallery.clear();
    this.more.replaceChildren();
    this.summary.replaceChildren();
    this.notes.replaceChildren(h("div", { class: "empty", role: "alert" }, h("h2", {}, "That did not work"), h("p", {}, error.message),
      h("button", { type: "button", class: "button", onclick: () => this.search() }, "Try again")));
  }

  async loadMore() {
    const answer = this.answer;
    if (!answer?.cursor || answer.loading) return;
    answer.loading = true;
    try {
      const page = await answer.next(answer.cursor);
      answer.hits.push(...page.hits);
      answer.cursor = page.cursor;
      if (answer === this.answer) this.draw();
    } catch (error) {
      answer.cursor = null;
      toast(error.message, "error");
    } finally { answer.loading = false; }
  }

  // What is left of the hits when the matches that the user rejected are taken away.
  visible() {
    const answer = this.answer;
    if (!answer) return [];
    if (!answer.people.length) return answer.hits;
    return answer.hits.map((hit) => ({ ...hit, matches: hit.matches
      .filter((match) => !isHidden(answer.people[match.person], hit.photo.id, match.face))
      .map((match) => ({ ...match, name: label(answer.people[match.person]) })) }))
      .filter((hit) => hit.matches.length >= needed());
  }

  draw() {
    const answer = this.answer;
    if (!answer) return;
    const hits = this.visible();
    const ordered = this.grouped(hits);
    this.ordered = ordered.flatMap((group) => group.hits);
    this.gallery.show(ordered);
    this.summarise(hits);
    this.more.replaceChildren(answer.cursor ? "Loading more…" : "");
    if (answer.cursor && this.more.getBoundingClientRect().top < innerHeight + 900) this.loadMore();
  }

  grouped(hits) {
    const names = this.answer.people.map(label);
    if (!names.length) return [{ title: "", note: "", hits }];
    return inGroups(hits, names).map((group) => ({ ...group, note: this.size(group) }));
  }

  // While there is more to load, the server's count of the whole answer; `fast` and `set` cannot tell.
  size({ hits, count, sure }) {
    const { cursor, totals } = this.answer;
    const total = query.filters.mode === "exact" && totals?.find(({ matched }) => matched === count);
    const all = total && (sure ? total.sure : total.photos - total.sure);
    return cursor ? all ? plural(all, "photo") : `${plural(hits.length, "photo")} so far` : plural(hits.length, "photo");
  }

  summarise(hits) {
    const { people, searched, seconds, warnings, cursor } = this.answer;
    this.notes.replaceChildren(...warnings.map((text) => h("p", { class: "notice" }, `${text[0].toUpperCase()}${text.slice(1)}.`)));
    if (!people.length) {
      this.summary.replaceChildren(...(hits.length ? [h("span", {}, "Or begin with a photo from your library: open it and click a face; or with the ", h("a", { href: "#people" }, "people in your photos"), ".")] : []));
      if (!hits.length) this.notes.replaceChildren(this.emptyLibrary());
      return;
    }
    const mode = { exact: "exact", fast: "fast", set: "set vectors" }[query.filters.mode];
    this.summary.replaceChildren(h("b", {}, `${plural(hits.length, "photo")}${cursor ? " and more" : ""}`),
      h("span", {}, `${searched.toLocaleString()} searched in ${(seconds.search * 1000).toFixed(1)} ms (${mode})`));
    if (!hits.length) {
      this.notes.append(h("div", { class: "empty" }, h("h2", {}, "No photo fits"),
        h("p", {}, "Ask for fewer of the people, loosen the filters, or add another photo of each person: a second example often helps."),
        h("button", { type: "button", class: "button", onclick: () => this.filters.reset() }, "Reset the filters")));
    }
  }

  emptyLibrary() {
    const running = this.status?.index.state === "running";
    return h("div", { class: "empty" }, h("h2", {}, running ? "Your photos are being looked at" : "No photos yet"),
      h("p", {}, running ? "They appear here as they are indexed." : "Name a folder of photos; setnet finds the faces in it. Nothing leaves this machine."),
      h("a", { class: "button primary", href: "#index" }, running ? "See how it goes" : "Choose a folder"));
  }

  savedOf(match) { return this.answer.people[match.person]?.saved ?? null; }

  // What is said of a saved person is kept in the library; the answer follows when the large view is closed.
  async confirm(match, hit, undone) {
    const [original, person] = [this.original(match, hit), this.savedOf(match)];
    const was = original.sure;
    const mark = (sure) => { original.sure = sure; this.isStale = true; this.draw(); };
    const done = await confirmFace(person, hit.photo, match.face, () => { mark(was); undone(); this.settle(); });
    if (done) mark(true);
    return done;
  }

  async reject(match, hit, undone = () => {}) {
    const person = this.answer.people[match.person];
    const hidden = (on) => hide(person, hit.photo.id, match.face, on);
    if (!person.saved) {
      hidden(true);
      toast(`That face no longer counts as ${match.name} in this search.`);
    } else if (await refuseFace(person.saved, hit.photo, match.face, () => { hidden(false); undone(); this.isStale = true; this.settle(); })) {
      hidden(true);
    }
  }

  original(match, hit) {
    const known = this.answer.hits.find((other) => other.photo.id === hit.photo.id);
    return known.matches.find((other) => other.face === match.face && other.person === match.person);
  }

  async settle() {
    if (!this.isStale || document.getElementById("viewer")) return;
    this.isStale = false;
    await this.search();
  }

  // The hits for the large view: what is said there moves photos to other groups, but none to another place in it.
  inOrder() {
    const shown = new Map();
    return () => {
      const now = new Map(this.ordered.map((hit) => [hit.photo.id, hit]));
      for (const [id, hit] of shown) if (!now.has(id) && hit.matches.length) shown.set(id, { ...hit, matches: [] });
      for (const [id, hit] of now) shown.set(id, hit);
      return [...shown.values()];
    };
  }

  view(hit) {
    const source = {
      hits: this.inOrder(),
      index: this.ordered.findIndex((other) => other.photo.id === hit.photo.id),
      more: () => this.loadMore(),
      hasMore: () => Boolean(this.answer?.cursor),
      closed: async (last) => {
        this.bar.redraw(); // somebody may have been named
        await this.settle();
        document.querySelector(`#view-search [data-photo="${last?.photo.id}"] .open`)?.focus({ preventScroll: false });
      },
    };
    new Viewer(source, {
      savedOf: (match) => this.savedOf(match),
      confirm: (...said) => this.confirm(...said),
      reject: (...said) => this.reject(...said),
      find: findFace,
      example: (match, photo, face) => {
        addExamples(this.answer.people[match.person], [exampleIn(photo, face)]);
        toast(`One more example of ${match.name}.`);
      },
    }).show();
  }
}
