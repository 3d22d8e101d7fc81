// The photos that are chosen, in whatever list they are: to download or to copy their paths.

const chosen = new Map(); // id -> photo, in the order of choosing
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
  get photos() {
    return [...chosen.values()];
  },
  has: (id) => chosen.has(id),
  onChange(listener) {
    listeners.add(listener);
  },
  set(photos, on) {
    for (const photo of photos)
      if (on) chosen.set(photo.id, photo);
      else chosen.delete(photo.id);
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
