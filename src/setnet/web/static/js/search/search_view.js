// The search view: one bar with the query, the photos below.

import { photoInAddress, read, write } from "../address.js";
import { api } from "../api.js";
import { debounce, h, icon, plural } from "../dom.js";
import { Gallery, skeleton } from "../gallery/gallery.js";
import { hitOf, photosIn } from "../gallery/hit.js";
import { inGroups, listed, nobodyWith } from "../gallery/matches.js";
import { selection } from "../gallery/selection.js";
import { Scrubber } from "../gallery/scrubber.js";
import { PAGE, Timeline } from "../gallery/timeline.js";
import { FirstRun } from "../index/first_run.js";
import { toast } from "../toasts.js";
import { trouble } from "../trouble.js";
import { withUploads } from "../uploads.js";
import { viewPhoto, Viewer } from "../viewer/viewer.js";
import { Filters } from "./filters.js";
import { FacesToSearch } from "./faces_to_search.js";
import { findFace } from "./find_face.js";
import { PeopleBar } from "./people_bar.js";
import { listenForDropsAndPastes } from "./picker.js";
import {
  addExamples,
  conditions,
  exampleIn,
  isHidden,
  label,
  needed,
  onChange,
  query,
  request,
  unwanted,
  uploadsOf,
  wanted,
} from "./query.js";
import { follow, queryValues } from "./query_address.js";
import { SavedSearches } from "./saved_searches.js";
import { SearchField } from "./search_field.js";
import { Said } from "./said.js";

// A match's `person` becomes their number in the query.
function hitsOf({ hits, people }) {
  const numbered = (match) => ({ ...match, person: people.indexOf(match.person), name: match.person });
  return hits.map(({ matches, ...photo }) => hitOf(photo, matches.map(numbered)));
}

const counted = (number) => plural(number, query.filters.kind === "video" ? "shot" : "photo");

export class SearchView {
  constructor(section) {
    this.section = section;
    this.years = [];
    this.unfolded = new Set(); // how many of the people are in the photos that were unfolded
    this.faces = new FacesToSearch();
    this.bar = new PeopleBar({ field: new SearchField({ years: () => this.years }), faces: this.faces });
    this.filters = new Filters();
    this.searches = new SavedSearches();
    this.filters.chips.before(this.searches.button);
    this.summary = h("p", { class: "summary", role: "status" });
    this.notes = h("div", { class: "notes" });
    this.said = new Said(this);
    this.timeline = new Timeline({
      changed: () => {
        if (!this.answer?.people.length) this.draw();
      },
    });
    const act = { open: (hit) => this.view(hit), reject: (match, hit) => this.said.reject(match, hit) };
    this.results = new Gallery({
      ...act,
      moved: () => this.nearEnd(),
      fold: (group) => this.fold(group),
      tick: (group) => this.tick(group),
    });
    this.album = new Gallery({
      ...act,
      flow: true,
      height: [200, 118],
      need: (first, last) => this.timeline.need(first, last),
      moved: () => this.scrubber.follow(),
    });
    this.scrubber = new Scrubber(this.album);
    this.more = h("div", { class: "more" });
    this.firstRun = new FirstRun();
    this.answer = null;
    this.status = null;
    this.head = h(
      "div",
      { class: "query" },
      h("h1", { id: "search-title", class: "visually-hidden" }, "Who are you looking for?"),
      this.bar.element,
      h("div", { class: "narrow" }, this.summary, this.filters.element),
    );
    section.append(
      this.head,
      this.faces.element,
      this.searches.element,
      this.firstRun.element,
      this.notes,
      this.results.element,
      this.album.element,
      this.more,
      this.scrubber.element,
    );
    new ResizeObserver(() =>
      document.documentElement.style.setProperty("--bar", `${this.head.offsetHeight}px`),
    ).observe(this.head);
    listenForDropsAndPastes(() => this.bar.element);
    const soon = debounce(() => this.search(), 90);
    onChange((what, field) => {
      this.bar.draw();
      this.filters.draw();
      this.searches.draw();
      if (what === "hidden") {
        this.draw();
        return;
      }
      this.remember({ push: what !== "names", field }); // at once: whoever reads the address must find this query
      if (what !== "names") query.hidden.clear();
      section.setAttribute("aria-busy", "true"); // at once: what is shown answers another question
      soon();
    });
  }

  remember(how) {
    if (read().name === "search") write("search", queryValues(), how);
  }

  // Shows what the address asks for. What is needed is asked for at once, since each answer may take long.
  async show(asked) {
    this.begun = asked.then((status) => {
      this.status = status;
      this.firstRun.draw(status);
    });
    const known = this.bar.load();
    const begun = Promise.all([this.begun, this.loadYears()]);
    for (const one of [known, begun]) one.catch(() => {}); // it is told below
    const { values } = read();
    if (values.has("with") || values.has("without")) await known;
    const { isNew, gone } = await follow(values);
    if (gone) toast(`${plural(gone, "person", "people")} of this search cannot be found any more.`, "error");
    if (isNew) query.hidden.clear();
    if (isNew || !this.answer) await this.search();
    else if (!this.answer.people.length) await this.reload();
    await begun;
    // Photos come first: to count those of hundreds of people takes long.
    Promise.all([known, this.searches.load()]).catch((error) => toast(error.message, "error"));
    this.bar.draw();
    this.filters.draw();
    this.followPhoto();
  }

  // The photo in the address is looked at; without one, none is.
  followPhoto() {
    const id = photoInAddress();
    if (!id || Viewer.current) return;
    const hit = this.ordered?.find((one) => one.photo.id === id);
    if (hit) this.view(hit);
    else viewPhoto(id);
  }

  async loadYears() {
    const [{ months, photos }] = await Promise.all([this.timeline.monthsOf({ collapse: true }), this.begun]);
    this.years = [...new Set(months.map(({ month }) => month?.slice(0, 4)).filter(Boolean))];
    this.filters.configure(this.status, this.years);
    this.filters.draw();
    this.firstRun.photos(photos);
  }

  refresh(status) {
    this.status = status;
    this.firstRun.draw(status);
    if (this.section.hidden || wanted().length) this.forget();
    else this.reload();
    this.faces.load().catch(() => {}); // people appear while an index run goes on
  }

  // Photos came or went: those that are shown stay where they are.
  async reload() {
    try {
      await Promise.all([this.timeline.load(), this.loadYears()]);
      if (this.answer && !this.answer.people.length) this.draw();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  // The people changed: the next time this view is shown, it searches again.
  forget() {
    this.answer = null;
    this.bar.redraw();
  }

  // A face was named in the large view: that may change who is where.
  named() {
    if (this.section.hidden) {
      this.forget();
      return;
    }
    this.said.isStale = wanted().length > 0;
    this.said.settle();
  }

  async search() {
    this.aborter?.abort();
    const aborter = new AbortController();
    this.aborter = aborter;
    this.section.setAttribute("aria-busy", "true");
    const waiting = setTimeout(() => this.wait(), 200);
    try {
      const [answer] = await Promise.all([wanted().length ? this.find(aborter.signal) : this.browse(), this.begun]);
      if (aborter.signal.aborted) return;
      const whom = ({ people }) => people.map((person) => person.key).join();
      if (!this.answer || whom(answer) !== whom(this.answer)) this.unfolded.clear();
      const isOther = Boolean(this.answer) && this.answer.people.length > 0 !== answer.people.length > 0;
      this.answer = answer;
      if (isOther) scrollTo({ top: 0, behavior: "instant" });
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
    } finally {
      clearTimeout(waiting);
      if (this.aborter === aborter) this.section.setAttribute("aria-busy", "false");
    }
  }

  async find(signal) {
    const people = wanted();
    const uploads = uploadsOf();
    const ids = uploads.map((example) => example.id);
    let body; // further pages belong to this query, whatever is being typed meanwhile
    const first = await withUploads(uploads, () => {
      body = request();
      return api.search(body, signal);
    });
    if (uploads.some((example, number) => example.id !== ids[number])) this.bar.draw(); // pictures of the faces that were sent again
    return {
      people,
      hits: hitsOf(first),
      cursor: first.cursor,
      seconds: first.seconds,
      searched: first.searched,
      warnings: first.warnings,
      totals: first.totals,
      next: (cursor) => api.search({ ...body, cursor }).then((page) => ({ hits: hitsOf(page), cursor: page.cursor })),
    };
  }

  async browse() {
    const without = unwanted().map((person) => person.saved?.id ?? person.group?.id);
    if (without.every(Boolean)) await this.timeline.load({ ...conditions(), without, collapse: !query.filters.apart });
    return { people: [], warnings: [], hits: [], cursor: null };
  }

  wait() {
    this.notes.replaceChildren();
    this.summary.textContent = "Searching…";
    if (this.answer) return; // the photos of the query before are better than none
    this.results.element.hidden = false;
    this.results.clear();
    this.results.element.replaceChildren(...skeleton(this.results.element.clientWidth));
  }

  fail(error) {
    this.answer = null;
    this.results.clear();
    this.album.clear();
    this.scrubber.element.hidden = true;
    this.more.replaceChildren();
    this.summary.replaceChildren();
    this.notes.replaceChildren(trouble(error, () => this.search()));
  }

  // How many of the people are in the photos that are not folded, and whether further pages have such photos.
  isOpen(count) {
    return count === this.top || this.unfolded.has(count);
  }

  get isWanting() {
    const reached = this.answer.hits.at(-1)?.matches.length ?? 0;
    return this.answer.people.some((_, number) => number + 1 <= reached && this.isOpen(number + 1));
  }

  nearEnd() {
    if (this.answer?.cursor && this.isWanting && this.more.getBoundingClientRect().top < 2 * innerHeight)
      this.loadMore();
  }

  fold({ count }) {
    if (!this.unfolded.delete(count)) this.unfolded.add(count);
    this.draw();
  }

  // Selects all photos of a group, those that are not loaded yet too.
  async tick({ key, count }) {
    while (this.answer?.cursor && (this.answer.hits.at(-1)?.matches.length ?? 0) >= count) await this.loadMore();
    const hits = this.groups.filter((group) => group.key === key).flatMap((group) => group.hits);
    selection.set(hits, !hits.every((hit) => selection.has(hit.photo.id)));
  }

  async loadMore() {
    const answer = this.answer;
    if (!answer?.cursor) return;
    answer.loading ??= answer
      .next(answer.cursor)
      .then((page) => {
        answer.hits.push(...page.hits);
        answer.cursor = page.cursor;
      })
      .catch((error) => {
        answer.cursor = null;
        toast(error.message, "error");
      })
      .finally(() => {
        answer.loading = null;
        if (answer === this.answer) this.draw();
      });
    await answer.loading;
  }

  // What is left of the hits when the matches that the user rejected are taken away.
  visible() {
    const { people, hits } = this.answer;
    return hits
      .map((hit) => ({
        ...hit,
        matches: hit.matches
          .filter((match) => !isHidden(people[match.person], hit.photo.id, match.face))
          .map((match) => ({ ...match, name: label(people[match.person]), saved: people[match.person].saved })),
      }))
      .filter((hit) => hit.matches.length >= needed());
  }

  draw() {
    const answer = this.answer;
    if (!answer) return;
    const isSearch = answer.people.length > 0;
    this.results.element.hidden = !isSearch;
    this.album.element.hidden = isSearch;
    const warnings = answer.warnings.map((text) => h("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`));
    this.notes.replaceChildren(...(warnings.length ? [h("div", { class: "notice" }, warnings)] : []));
    if (isSearch) this.drawResults();
    else this.drawAlbum();
    this.more.replaceChildren(answer.cursor && this.isWanting ? "Loading more…" : "");
  }

  drawAlbum() {
    this.results.clear();
    const { timeline } = this;
    const unknown = unwanted().filter((person) => !person.saved && !person.group);
    this.ordered = unknown.length ? [] : timeline.hits;
    this.summary.replaceChildren(h("b", {}, unknown.length ? "" : counted(timeline.photos)));
    this.album.show(unknown.length ? [] : timeline.months);
    this.scrubber.begin();
    if (unknown.length)
      this.explain(
        "Nobody to look for",
        `Add somebody who shall be in the photos, or save ${listed(unknown.map(label))} by name.`,
      );
    else if (!timeline.total && this.status.photos)
      this.explain(unwanted().length ? "No photo without them" : "No photo fits");
  }

  drawResults() {
    this.album.clear();
    this.scrubber.element.hidden = true;
    const hits = this.visible();
    const { people, totals, cursor } = this.answer;
    const names = people.map(label);
    const loaded = (count) => hits.filter((hit) => hit.matches.length === count);
    const isExact = query.filters.mode === "exact";
    const total = (count) => (isExact && totals?.find(({ matched }) => matched === count)) || { photos: 0, sure: 0 };
    const isLeft = (count) => Boolean(cursor) && total(count).photos > 0;
    this.top =
      names.map((_, number) => names.length - number).find((count) => loaded(count).length || isLeft(count)) ?? 0;
    const groups = inGroups(hits, names, {
      isOpen: (count) => this.isOpen(count),
      isNewest: query.filters.order === "newest",
      hasMore: isLeft,
    });
    // While there is more to load, the server's count of the whole answer; other ways to search than by every face cannot tell.
    /** @param {import("../gallery/matches.js").Group} group */
    const size = ({ count, sure, isPart, isFolded, hits: those }) => {
      const { photos, sure: certain } = total(count);
      const all = isPart || !isLeft(count) ? 0 : sure === undefined ? photos : sure ? certain : photos - certain;
      const here = photosIn(isFolded === undefined ? those : loaded(count));
      return all >= here && all ? counted(all) : `${counted(here)}${cursor && !all ? " so far" : ""}`;
    };
    this.groups = groups.map((group) =>
      group.isLevel ? { ...group, title: `${size(group)} ${group.title}`, note: "" } : { ...group, note: size(group) },
    );
    this.ordered = this.groups.flatMap((group) => group.hits);
    this.results.show(this.groups);
    this.summarise(hits, total);
    this.nearEnd();
  }

  summarise(hits, total) {
    const { searched, seconds, cursor, people } = this.answer;
    const all = people.reduce((sum, _, number) => sum + (number + 1 >= needed() ? total(number + 1).photos : 0), 0);
    const shown = photosIn(hits);
    const more = all > shown ? counted(all) : `${counted(shown)} and more`;
    this.summary.replaceChildren(h("b", {}, cursor ? more : counted(shown)));
    this.filters.tell(searched, seconds.search);
    if (this.top === people.length) return;
    const names = people.map(label);
    if (hits.length) this.notes.prepend(h("p", { class: "absent" }, `${nobodyWith(names)}.`));
    else
      this.explain(
        nobodyWith(names),
        "Another photo of each person often helps: a second example makes more matches sure.",
      );
  }

  // Why nothing is shown, with a button for each filter to drop.
  explain(title, advice = "") {
    const filters = this.filters.inForce();
    const drop = ({ text, drop: act }) =>
      h(
        "button",
        { type: "button", class: "pill is-on", "aria-label": `Drop the filter ${text}`, onclick: act },
        text,
        icon("close"),
      );
    this.notes.append(
      h(
        "div",
        { class: "empty" },
        h("h2", {}, title),
        h("p", {}, filters.length ? "These filters may have left nothing:" : advice),
        filters.length > 0 && h("div", { class: "drops" }, filters.map(drop)),
      ),
    );
  }

  savedOf(match) {
    return this.answer.people[match.person]?.saved ?? null;
  }

  // The hits for the large view: what is said there moves photos to other groups, but none to another place in it.
  inOrder() {
    const shown = new Map();
    return () => {
      const now = new Map(this.visible().map((hit) => [hit.photo.id, hit]));
      for (const [id, hit] of shown) shown.set(id, now.get(id) ?? { ...hit, matches: [] });
      for (const hit of this.ordered) shown.set(hit.photo.id, hit);
      return [...shown.values()];
    };
  }

  resultsFrom(hit) {
    return {
      hits: this.inOrder(),
      index: this.ordered.findIndex((other) => other.photo.id === hit.photo.id),
      more: () => this.loadMore(),
      hasMore: () => Boolean(this.answer?.cursor),
    };
  }

  // The photos by date, on both sides of one.
  albumFrom(hit) {
    let { first, hits } = this.timeline.around(hit.photo.id) ?? { first: 0, hits: [hit] };
    const source = {
      hits: () => hits,
      index: hits.findIndex((other) => other.photo.id === hit.photo.id),
      hasMore: () => first + hits.length < this.timeline.total,
      hasBefore: () => first > 0,
      more: async () => {
        await this.timeline.need(Math.max(0, first - PAGE), first + hits.length + PAGE - 1);
        const { id } = hits[source.index].photo; // another step may have been taken meanwhile
        const around = this.timeline.around(id);
        if (!around) return; // it is not in the library any more
        ({ first, hits } = around);
        source.index = hits.findIndex((other) => other.photo.id === id);
      },
    };
    return source;
  }

  view(hit) {
    const source = Object.assign(this.answer?.people.length ? this.resultsFrom(hit) : this.albumFrom(hit), {
      closed: async (last) => {
        this.bar.redraw(); // somebody may have been named
        await this.said.settle();
        (this.answer?.people.length ? this.results : this.album).reveal(last?.photo.id);
      },
    });
    new Viewer(source, {
      savedOf: (match) => this.savedOf(match),
      confirm: (...said) => this.said.confirm(...said),
      reject: (...said) => this.said.reject(...said),
      find: findFace,
      example: (match, photo, face) => {
        addExamples(this.answer.people[match.person], [exampleIn(photo, face)]);
        toast(`One more example of ${match.name}.`);
      },
    }).show();
  }
}
