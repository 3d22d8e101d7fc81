// Who is where along a video: a strip of its shots, with the people the library knows; a click plays from there.

import { api } from "../api.js";
import { h } from "../dom.js";

export function clock(seconds) {
  const whole = Math.floor(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${two(minutes)}:${two(rest)}`;
}

export class ShotStrip {
  constructor(play) {
    this.play = play;
    this.element = h("div", { class: "strip", role: "group", "aria-label": "Who is where in the video" });
  }

  async show(photo) {
    const { seconds, shots } = await api.shots(photo.id);
    this.element.replaceChildren(
      ...shots.map((shot) => {
        const names = [...new Set(shot.faces.map((face) => face.person).filter(Boolean))];
        const others = shot.faces.length - shot.faces.filter((face) => face.person).length;
        const who = [...names, others && `${others} unknown`].filter(Boolean).join(", ") || "nobody";
        return h(
          "button",
          {
            type: "button",
            class: `${shot.id === photo.id ? "is-here" : ""} ${shot.faces.length ? "has-people" : ""}`,
            style: { flexGrow: (shot.to - shot.from) / seconds },
            title: `${clock(shot.from)}-${clock(shot.to)}: ${who}`,
            "aria-label": `Play from ${clock(shot.from)}: ${who}`,
            onclick: () => this.play(shot.from),
          },
          h("span", {}, names.join(", ")),
        );
      }),
    );
  }
}
