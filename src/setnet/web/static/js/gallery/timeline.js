// All photos of the library by date: how many each month has is known at once, photos are loaded where one looks.

import { api } from "../api.js";
import { monthName, shortMonth } from "../people/dates.js";
import { toast } from "../toasts.js";
import { hitOf } from "./hit.js";

export const PAGE = 100;

export class Timeline {
  // changed(): photos were loaded.
  constructor({ changed }) {
    this.changed = changed;
    this.months = [];
    this.total = 0; // entries: a photo may stand for copies and bursts
    this.photos = 0;
    this.conditions = {};
    this.asked = {};
    this.pages = new Map(); // number of a page -> when it is loaded
  }

  // Loads the months of the photos that meet conditions.
  async load(conditions = this.conditions) {
    const isOther = !this.total || JSON.stringify(conditions) !== JSON.stringify(this.conditions);
    const [{ months, total, photos }, first] = await Promise.all([
      this.monthsOf(conditions),
      isOther ? api.photosByDate(conditions, 0, PAGE) : null, // at once, which saves a round trip
    ]);
    const before = this.months.flatMap((month) => month.hits).filter(Boolean);
    const isSame =
      JSON.stringify(conditions) === JSON.stringify(this.conditions) &&
      photos === this.photos &&
      total === this.total &&
      months.length === this.months.length &&
      months.every((month, number) => this.months[number].hits.length === month.photos);
    if (isSame && total) return;
    const known = new Map(before.map((hit) => [hit.photo.id, hit]));
    this.known = known; // so that photos that stay are not drawn again
    this.total = total;
    this.photos = photos;
    this.conditions = conditions;
    this.months = months.map(({ month, photos: entries }) => ({
      title: shortMonth(month),
      name: monthName(month),
      note: "",
      hits: new Array(entries),
    }));
    let from = 0;
    for (const month of this.months) {
      month.from = from;
      from += month.hits.length;
    }
    this.pages.clear();
    if (total) await this.page(0, first);
  }

  // How many photos there are of each month; asked once while the answer is awaited.
  monthsOf(conditions) {
    const key = JSON.stringify(Object.entries(conditions).filter(([, value]) => value?.length ?? value));
    return (this.asked[key] ??= api.timeline(conditions).finally(() => delete this.asked[key]));
  }

  // Loads the photos from the place `first` to `last`.
  async need(first, last) {
    const numbers = [];
    for (
      let number = Math.floor(first / PAGE);
      number <= Math.floor(Math.min(last, this.total - 1) / PAGE);
      number += 1
    )
      numbers.push(number);
    const hasNew = numbers.some((number) => !this.pages.has(number));
    await Promise.all(numbers.map((number) => this.page(number)));
    if (hasNew) this.changed();
  }

  page(number, found = null) {
    if (!this.pages.has(number)) this.pages.set(number, this.fetch(number, found));
    return this.pages.get(number);
  }

  async fetch(number, found) {
    const { months, total } = this;
    try {
      const { photos } = found ?? (await api.photosByDate(this.conditions, number * PAGE, PAGE));
      if (months !== this.months || total !== this.total) return;
      photos.forEach((photo, place) => {
        const hit = hitOf(photo);
        const known = this.known?.get(photo.id);
        this.put(number * PAGE + place, known?.alike.length === hit.alike.length ? known : hit);
      });
    } catch (error) {
      this.pages.delete(number);
      toast(error.message, "error");
    }
  }

  put(place, hit) {
    let [low, high] = [0, this.months.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.months[middle].from <= place) low = middle;
      else high = middle - 1;
    }
    const month = this.months[low];
    if (month && place - month.from < month.hits.length) month.hits[place - month.from] = hit;
  }

  // The loaded photos without a gap around one of them, and the place of the first; null if it is not among them.
  around(id) {
    const all = this.months.flatMap((month) => [...month.hits]);
    const at = all.findIndex((hit) => hit?.photo.id === id);
    if (at < 0) return null;
    let [first, last] = [at, at];
    while (all[first - 1]) first -= 1;
    while (all[last + 1]) last += 1;
    return { first, hits: all.slice(first, last + 1) };
  }

  get hits() {
    return this.months.flatMap((month) => month.hits).filter(Boolean);
  }
}
