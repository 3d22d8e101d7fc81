// The faces of the photo in the large view: who each is, how sure that is, and what can be said about it.

import { api, urls } from "../api.js";
import { active, h, plural } from "../dom.js";
import { coverOf, cutOut } from "../face_picture.js";
import { bandOf, called, certainty, figures } from "../gallery/matches.js";
import { nameFace } from "../naming.js";
import { called as savedAs } from "../saved_people.js";
import { confirmFace, rejectFace } from "../search/labels.js";
import { fileSize, inWords } from "./camera.js";

// Who the faces of a photo are: matches of the query first, then whom the library knows.
export function identified(hit, known, savedOf) {
  const matches = new Map(hit.matches.map((match) => [match.face, match]));
  return hit.photo.faces.map((_, number) => {
    const match = matches.get(number);
    if (match) return { ...match, match, saved: savedOf(match) };
    const found = known[number];
    return found?.person ? { ...found, name: found.person, saved: savedAs(found.person) } : null;
  });
}

const link = (name, text, onclick, writes = false) =>
  h("button", { type: "button", class: "link", "data-act": name, "data-writes": writes, onclick }, text);

export class ViewerFaces {
  // act: {find(photo, face, saved), example(match, photo, face), confirm(match, hit), reject(match, hit)}; each closes or redraws by itself. peek(id): shows another photo of the same moment; tag(): asks who else is there.
  constructor({ act, close, redraw, peek, tag }) {
    this.act = act;
    this.close = close;
    this.redraw = redraw;
    this.peek = peek;
    this.tag = tag;
    this.element = h("aside", { class: "side", id: "viewer-side", "aria-label": "Faces in this photo", tabindex: "0" });
    this.camera = h("p", { class: "camera", role: "group", "aria-label": "Camera" });
    this.said = new Set(); // "photo/face" that were confirmed in this view
  }

  // `moment`: the photos that are one in the answer, if there are several.
  show(hit, who, targets, moment = [], tags = []) {
    const focused = active()?.dataset?.act;
    if (this.photo !== hit.photo) {
      this.photo = hit.photo;
      this.tell(hit.photo);
    }
    const { faces } = hit.photo;
    this.element.replaceChildren(
      this.moment(moment, hit.photo.id),
      h("h2", {}, faces.length ? plural(faces.length, "face") : "No face in this photo"),
      h(
        "ol",
        {},
        faces.map((face, number) => this.line(hit, face, number, who[number], targets[number])),
        tags.filter(({ face }) => face === null).map(({ person }) => this.tagged(hit, person)),
      ),
      link("tag", "Somebody else is here…", () => this.tag(), true),
      h("div", { class: "details" }, this.details(hit.photo), this.camera),
      this.advanced(who),
    );
    if (focused) (this.element.querySelector(`[data-act="${focused}"]`) ?? this.element).focus();
  }

  // Whom the user sees where no face was found.
  tagged({ photo }, name) {
    const person = savedAs(name);
    const remove = async () => {
      await rejectFace(person, { photo }, null, this.redraw);
      this.redraw();
    };
    return h(
      "li",
      {},
      person ? coverOf(person) : "",
      h("span", { class: "who" }, name),
      h("span", { class: "acts" }, person && link(`untag-${person.id}`, `Not ${name}`, remove, true)),
    );
  }

  moment(photos, shown) {
    if (!photos.length) return "";
    return h(
      "section",
      { class: "moment", "aria-label": "Photos of this moment" },
      h("h2", {}, `${plural(photos.length, "photo")} of this moment`),
      h(
        "div",
        {},
        photos.map((photo, number) =>
          h(
            "button",
            {
              type: "button",
              "data-act": `peek-${number}`,
              "aria-label": `Photo ${number + 1} of ${photos.length}`,
              "aria-pressed": String(photo.id === shown),
              onclick: () => this.peek(photo.id),
            },
            h("img", { src: urls.thumbnail({ version: 0, ...photo }, 320), alt: "", loading: "lazy" }),
          ),
        ),
      ),
    );
  }

  line(hit, face, number, who, target) {
    const light = (on) => target.classList.toggle("is-lit", on);
    return h(
      "li",
      { onmouseenter: () => light(true), onmouseleave: () => light(false) },
      cutOut(hit.photo, face.box, 52),
      h(
        "span",
        { class: `who ${who ? bandOf(who) : ""}`, title: who && certainty(who) },
        who ? called(who) : `Face ${number + 1}`,
        who && who.sure === false && h("small", {}, " a guess"),
      ),
      h("span", { class: "acts" }, this.acts(hit, number, who)),
    );
  }

  details({ name, folder, width, height, bytes }) {
    const size = `${width} × ${height} · ${fileSize(bytes)}`;
    return [h("b", {}, name), h("span", {}, size), h("span", {}, folder)];
  }

  // How and where a photo was taken, as its file tells.
  async tell(photo) {
    this.camera.replaceChildren();
    if (photo.kind === "video") return;
    const facts = await api.camera(photo.id).catch(() => null); // the file may be gone
    if (facts && this.photo === photo)
      this.camera.replaceChildren(...inWords(facts).map((text) => h("span", {}, text)));
  }

  // The figures behind the names, for those who want them.
  advanced(who) {
    const lines = who.flatMap((one) =>
      one && figures(one) ? [h("li", {}, h("b", {}, one.name), " ", figures(one))] : [],
    );
    return lines.length
      ? h(
          "details",
          {
            class: "advanced",
            open: this.isAdvanced,
            ontoggle: (event) => {
              this.isAdvanced = event.target.open;
            },
          },
          h("summary", {}, "Advanced"),
          h("ul", {}, lines),
        )
      : "";
  }

  acts(hit, number, who) {
    const say = (name, text, act, writes = true) => link(`${name}-${number}`, text, act, writes);
    const find = say(
      "find",
      "Find this person",
      () => {
        this.close();
        this.act.find(hit.photo, number, who?.saved);
      },
      false,
    );
    if (!who?.saved && !who?.match) return [find, say("name", "Who is this?", () => this.name(hit, number))];
    if (who.saved) {
      const isSaid = this.said.has(`${hit.photo.id}/${number}`);
      return [
        isSaid
          ? h("span", { class: "said" }, "Confirmed")
          : who.sure === false && say("yes", `Yes, this is ${who.name}`, () => this.confirm(hit, number, who)),
        say("not", `Not ${who.name}`, () => this.refuse(hit, number, who)),
        !who.match && find,
      ];
    }
    return [
      say(
        "more",
        "Use as example",
        () => {
          this.close();
          this.act.example(who.match, hit.photo, number);
        },
        false,
      ),
      say(
        "not",
        `Not ${who.name}`,
        () => {
          this.act.reject(who.match, hit);
          this.redraw();
        },
        false,
      ),
    ];
  }

  name(hit, number) {
    const key = `${hit.photo.id}/${number}`;
    return nameFace(hit.photo, number, (isNamed) => {
      if (isNamed) this.said.add(key);
      else this.said.delete(key);
      this.redraw();
    });
  }

  async confirm(hit, number, who) {
    const key = `${hit.photo.id}/${number}`;
    const forget = () => {
      this.said.delete(key);
      this.redraw();
    };
    const done = who.match
      ? await this.act.confirm(who.match, hit, forget)
      : await confirmFace(who.saved, hit, number, forget);
    if (done) this.said.add(key);
    this.redraw();
  }

  async refuse(hit, number, who) {
    if (who.match) await this.act.reject(who.match, hit, this.redraw);
    else await rejectFace(who.saved, hit, number, this.redraw);
    this.said.delete(`${hit.photo.id}/${number}`);
    this.redraw();
  }
}
