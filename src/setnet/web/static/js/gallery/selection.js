// The photos that are chosen, in whatever list they are: to take them along, or to say who is in them.

import { eachOf } from "./hit.js";

const chosen = new Map(); // id -> hit, in the order of choosing
let isOn = false; // whether a tap on a photo chooses it
const listeners = new Set();

function tell() {
  for (const listener of listeners) listener();
}

export const selection = {
  get size() {
    return chosen.size;
  },
  get isOn() {
    return isOn || chosen.size > 0;
  },
  get hits() {
    return [...chosen.values()];
  },
  get photos() {
    return this.hits.map((hit) => hit.photo);
  },
  has: (id) => chosen.has(id),
  onChange(listener) {
    listeners.add(listener);
  },
  set(hits, on) {
    for (const hit of eachOf(hits))
      if (on) chosen.set(hit.photo.id, hit);
      else chosen.delete(hit.photo.id);
    tell();
  },
  begin() {
    isOn = true;
    tell();
  },
  clear() {
    if (!this.isOn) return;
    isOn = false;
    chosen.clear();
    tell();
  },
};
