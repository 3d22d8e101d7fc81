// The video of a shot in the large view: it plays from the shot's first second, with boxes where the faces are by then.

import { urls } from "../api.js";
import { h } from "../dom.js";

const LOST = 1.6; // seconds from a look at a face, after which nobody knows where it is

// Where a face is at a second of the video, between the looks at it; null when it is not seen.
export function boxAt(track, second) {
  const after = track.findIndex(([time]) => time >= second);
  const [before, next] =
    after < 0 ? [track.at(-1), null] : after === 0 ? [null, track[0]] : [track[after - 1], track[after]];
  if (before && next && next[0] - before[0] <= 2 * LOST) {
    const share = (second - before[0]) / (next[0] - before[0]);
    return before.slice(1).map((value, n) => value + (next[n + 1] - value) * share);
  }
  const near = [before, next].find((look) => look && Math.abs(look[0] - second) <= LOST);
  return near ? near.slice(1) : null;
}

export class ShotPlayer {
  // moved(boxes): called while it plays, with the box of each face or null.
  constructor(photo, moved) {
    this.photo = photo;
    this.tracks = [];
    this.video = h("video", {
      controls: true,
      playsinline: true,
      preload: "auto",
      "data-photo": photo.id,
      poster: urls.thumbnail(photo, 640),
      "aria-label": photo.name,
    });
    this.video.muted = true; // sound is for whoever wants it
    this.video.addEventListener("loadedmetadata", () => this.play(photo.from), { once: true });
    this.video.addEventListener("error", () =>
      this.video.replaceWith(
        h("img", {
          src: urls.thumbnail(photo, 1600),
          alt: `${photo.name}: this browser cannot play the video; open the file instead`,
          "data-photo": photo.id,
        }),
      ),
    );
    const follow = () => {
      moved(this.tracks.map((track) => boxAt(track, this.video.currentTime)));
      if (!this.video.paused && this.video.isConnected) requestAnimationFrame(follow);
    };
    for (const event of ["play", "seeked", "timeupdate"]) this.video.addEventListener(event, follow);
    this.video.src = urls.file(photo);
  }

  play(second) {
    this.video.currentTime = second;
    this.video.play().catch(() => {}); // a browser that wants a click first
  }
}
