// The search view: one bar with the query, the photos below.

import { photoInAddress, read, write } from "../address.js";
import { api } from "../api.js";
import { debounce, h, plural } from "../dom.js";
import { Gallery, skeleton } from "../gallery/gallery.js";
import { inGroups } from "../gallery/matches.js";
import { Scrubber } from "../gallery/scrubber.js";
import { PAGE, Timeline } from "../gallery/timeline.js";
import { FirstRun } from "../index/first_run.js";
import { toast } from "../toasts.js";
import { trouble } from "../trouble.js";
import { withUploads } from "../uploads.js";
import { viewPhoto, Viewer } from "../viewer/viewer.js";
import { Filters } from "./filters.js";
import { exampleIn, findFace } from "./find_face.js";
import { PeopleBar } from "./people_bar.js";
import { listenForDropsAndPastes } from "./picker.js";
import {
  addExamples,
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
import { Said } from "./said.js";

// The API's hits as {photo, score, matches, alike}; a match's `person` becomes their number in the query, `alike` are copies and others of a burst.
function hitsOf({ hits, people }) {
  return hits.map(({ score, matches, boxes, copies = [], others = [], ...photo }) => ({
    score,
    alike: [...copies, ...others],
    photo: { ...photo, faces: boxes.map((box) => ({ box })) },
    matches: matches.map((match) => ({ ...match, person: people.indexOf(match.person), name: match.person })),
  }));
}

const photosIn = (hits) => hits.reduce((sum, hit) => sum + 1 + hit.alike.length, 0);
const counted = (number) => plural(number, query.filters.kind === "video" ? "shot" : "photo");

export class SearchView {
  constructor(section) {
    this.section = section;
    this.bar = new PeopleBar();
    this.filters = new Filters();
    this.summary = h("p", { class: "summary", role: "status" });
    this.notes = h("div", { class: "notes" });
    this.said = new Said(this);
    this.timeline = new Timeline({
      changed: () => {
        if (!this.answer?.people.length) this.draw();
      },
    });
    const act = { open: (hit) => this.view(hit), reject: (match, hit) => this.said.reject(match, hit) };
    this.results = new Gallery({ ...act, moved: () => this.nearEnd() });
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
      h("h1", { id: "search-title" }, "Who are you looking for?"),
      this.bar.element,
      h("div", { class: "narrow" }, this.summary, this.filters.element),
    );
    section.append(
      this.head,
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
      if (what === "hidden") {
        this.draw();
        return;
      }
      this.remember({ push: what !== "names", field }); // at once: whoever reads the address must find this query
      if (what !== "names") query.hidden.clear();
      soon();
    });
  }

  remember(how) {
    if (read().name === "search") write("search", queryValues(), how);
  }

  // Shows what the address asks for.
  async show(status) {
    this.status = status;
    this.filters.configure(status);
    this.firstRun.draw(status);
    await this.bar.load();
    const { isNew, gone } = await follow(read().values);
    if (gone) toast(`${plural(gone, "person", "people")} of this search cannot be found any more.`, "error");
    this.bar.draw();
    this.filters.draw();
    if (isNew) query.hidden.clear();
    if (isNew || !this.answer) await this.search();
    else if (!this.answer.people.length) await this.reload();
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

  refresh(status) {
    this.status = status;
    this.filters.configure(status);
    this.firstRun.draw(status);
    if (this.section.hidden || wanted().length) this.forget();
    else this.reload();
  }

  // Photos came or went: those that are shown stay where they are.
  async reload() {
    try {
      await this.timeline.load();
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
      const answer = wanted().length ? await this.find(aborter.signal) : await this.browse();
      if (aborter.signal.aborted) return;
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
    await this.timeline.load();
    return { people: [], warnings: [], hits: [], cursor: null };
  }

  wait() {
    this.notes.replaceChildren();
    this.head.classList.toggle("has-people", wanted().length > 0); // without people, the summary has no place
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
    this.head.classList.toggle("has-people", wanted().length > 0);
    this.more.replaceChildren();
    this.summary.replaceChildren();
    this.notes.replaceChildren(trouble(error, () => this.search()));
  }

  nearEnd() {
    if (this.answer?.cursor && this.more.getBoundingClientRect().top < 2 * innerHeight) this.loadMore();
  }

  async loadMore() {
    const answer = this.answer;
    if (!answer?.cursor || answer.loading) return;
    answer.loading = true;
    try {
      const page = await answer.next(answer.cursor);
      answer.hits.push(...page.hits);
      answer.cursor = page.cursor;
    } catch (error) {
      answer.cursor = null;
      toast(error.message, "error");
    }
    answer.loading = false;
    if (answer === this.answer) this.draw();
  }

  // What is left of the hits when the matches that the user rejected are taken away.
  visible() {
    const { people, hits } = this.answer;
    return hits
      .map((hit) => ({
        ...hit,
        matches: hit.matches
          .filter((match) => !isHidden(people[match.person], hit.photo.id, match.face))
          .map((match) => ({ ...match, name: label(people[match.person]) })),
      }))
      .filter((hit) => hit.matches.length >= needed());
  }

  draw() {
    const answer = this.answer;
    if (!answer) return;
    const isSearch = answer.people.length > 0;
    this.head.classList.toggle("has-people", isSearch);
    this.results.element.hidden = !isSearch;
    this.album.element.hidden = isSearch;
    const warnings = answer.warnings.map((text) => h("p", {}, `${text[0].toUpperCase()}${text.slice(1)}.`));
    this.notes.replaceChildren(...(warnings.length ? [h("div", { class: "notice" }, warnings)] : []));
    if (isSearch) this.drawResults();
    else this.drawAlbum();
    this.more.replaceChildren(answer.cursor ? "Loading more…" : "");
  }

  drawAlbum() {
    this.results.clear();
    this.summary.replaceChildren();
    if (unwanted().length) {
      this.askForSomebody();
      return;
    }
    this.ordered = this.timeline.hits;
    this.album.show(this.timeline.months);
    this.scrubber.begin();
    this.firstRun.photos(this.timeline.total);
  }

  // Nobody is looked for, but somebody must not be there: the photos by date would show them.
  askForSomebody() {
    this.ordered = [];
    this.album.clear();
    this.scrubber.element.hidden = true;
    this.firstRun.photos(1);
    const names = unwanted().map(label).join(" and ");
    this.notes.replaceChildren(
      h(
        "div",
        { class: "empty" },
        h("h2", {}, "Nobody to look for"),
        h("p", {}, `“Without ${names}” narrows a search: add somebody who shall be in the photos.`),
      ),
    );
  }

  drawResults() {
    this.album.clear();
    this.scrubber.element.hidden = true;
    this.firstRun.photos(1);
    const hits = this.visible();
    const names = this.answer.people.map(label);
    const groups = inGroups(hits, names).map((group) => ({ ...group, note: this.size(group) }));
    this.ordered = groups.flatMap((group) => group.hits);
    this.results.show(groups);
    this.summarise(hits);
    this.nearEnd();
  }

  // While there is more to load, the server's count of the whole answer; other ways to search than by every face cannot tell.
  size({ hits, count, sure }) {
    const { cursor, totals } = this.answer;
    const total = query.filters.mode === "exact" && totals?.find(({ matched }) => matched === count);
    const all = total && (sure ? total.sure : total.photos - total.sure);
    const shown = counted(photosIn(hits));
    return cursor ? (all ? counted(all) : `${shown} so far`) : shown;
  }

  summarise(hits) {
    const { searched, seconds, cursor, totals } = this.answer;
    const all =
      query.filters.mode === "exact" && totals
        ? totals.filter(({ matched }) => matched >= needed()).reduce((sum, { photos }) => sum + photos, 0)
        : 0;
    const shown = photosIn(hits);
    this.summary.replaceChildren(
      h("b", {}, cursor ? (all > shown ? counted(all) : `${counted(shown)} and more`) : counted(shown)),
    );
    this.filters.tell(searched, seconds.search);
    if (hits.length) return;
    this.notes.append(
      h(
        "div",
        { class: "empty" },
        h("h2", {}, "No photo fits"),
        h(
          "p",
          {},
          "Ask for fewer of the people, loosen the filters, or add another photo of each person: a second example often helps.",
        ),
        h("button", { type: "button", class: "button", onclick: () => this.filters.reset() }, "Reset the filters"),
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
      const now = new Map(this.ordered.map((hit) => [hit.photo.id, hit]));
      for (const [id, hit] of shown) if (!now.has(id) && hit.matches.length) shown.set(id, { ...hit, matches: [] });
      for (const [id, hit] of now) shown.set(id, hit);
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
