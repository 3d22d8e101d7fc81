// The large view: one photo with all its faces; every face can be searched for.

import { enterPhoto, go, leavePhoto } from "../address.js";
import { api, urls } from "../api.js";
import { isNarrow } from "../device.js";
import { h, icon, iconButton } from "../dom.js";
import { bandOf, called, certainty } from "../gallery/matches.js";
import { boxStyle, tagPlaces } from "../gallery/tags.js";
import { findFace } from "../search/find_face.js";
import { toast } from "../toasts.js";
import { Tagging } from "./tagging.js";
import { ShotPlayer } from "./shot_player.js";
import { clock, ShotStrip } from "./shot_strip.js";
import { identified, ViewerFaces } from "./viewer_faces.js";
import { Zoom } from "./zoom.js";

const SHARP = /\.(jpe?g|jfif|png|webp|gif|avif)$/i; // files that a browser shows as they are
const SMALL = 1600; // pixels of the picture that is shown at first

const SOURCES = { name: " · date from the file’s name", file: " · date from the file’s time" }; // that no camera wrote

const whenTaken = ({ taken }) =>
  taken
    ? new Date(taken).toLocaleString([], { dateStyle: isNarrow() ? "medium" : "long", timeStyle: "short" })
    : "Time unknown";

export class Viewer {
  static current = null;

  // The address has no photo any more: the large view is closed by Back.
  static follow(id) {
    if (!id && Viewer.current) Viewer.current.close();
  }

  // source: {hits(), index, more(), hasMore(), hasBefore(), closed(hit)}; more() loads what is next to the hits on either side; act: as of ViewerFaces, and savedOf(match), the saved person of a match.
  constructor(source, act) {
    this.source = source;
    this.act = act;
    this.title = h("b");
    this.about = h("span");
    this.open = h(
      "a",
      {
        class: "icon-button opens",
        target: "_blank",
        rel: "noopener",
        "aria-label": "Open the file",
        title: "Open the file",
      },
      icon("file"),
    );
    this.download = h("a", { class: "icon-button", "aria-label": "Download", title: "Download" }, icon("download"));
    this.previous = iconButton("back", "Previous photo", () => this.turn(-1), { class: "icon-button turn previous" });
    this.next = iconButton("forward", "Next photo", () => this.turn(1), { class: "icon-button turn next" });
    this.frame = h("div", { class: "frame" });
    this.near = h("img", { class: "near", alt: "", hidden: true });
    this.swiped = 0; // pixels by which a finger has moved the photo
    this.tagging = new Tagging({
      frame: this.frame,
      photo: () => this.hit.photo,
      changed: () => {
        document.dispatchEvent(new CustomEvent("people-named", { detail: null }));
        if (this.dialog.open) this.draw();
      },
    });
    this.strip = new ShotStrip((second) => this.player?.play(second));
    this.stage = h("div", { class: "stage" }, this.near, this.frame, this.previous, this.next, this.strip.element);
    this.zoom = new Zoom(this.stage, {
      changed: () => this.fit(),
      isOn: () => Boolean(this.hit) && !this.player && !this.tagging.isOn,
      size: () => this.base ?? [0, 0],
    });
    this.zoomer = [
      iconButton("minus", "Smaller", () => this.zoom.by(1 / 1.6), { class: "icon-button zooms" }),
      iconButton("plus", "Larger", () => this.zoom.by(1.6), { class: "icon-button zooms" }),
    ];
    this.names = iconButton("eye", "Show the boxes", () => this.showBoxes(), { "aria-pressed": "false" });
    this.sheet = iconButton("people", "Faces", () => this.showFaces(!this.hasFaces), {
      "aria-controls": "viewer-side",
    });
    this.side = new ViewerFaces({
      act,
      close: () => this.leave(),
      peek: (id) => this.peek(id),
      redraw: () => this.dialog.open && this.draw(),
      tag: () => this.tagging.ask(),
    });
    this.dialog = h(
      "dialog",
      { class: "viewer", id: "viewer", "aria-label": "Large view" },
      h(
        "div",
        { class: "bar" },
        h("div", { class: "title" }, this.title, this.about),
        this.names,
        this.sheet,
        this.tagging.button,
        this.zoomer,
        this.open,
        this.download,
        iconButton("close", "Close", () => this.dialog.close()),
      ),
      this.stage,
      this.side.element,
    );
    this.dialog.addEventListener("keydown", (event) => {
      if (event.key === "ArrowLeft") this.turn(-1);
      else if (event.key === "ArrowRight") this.turn(1);
      else if (event.key === "+" || event.key === "=") this.zoom.by(1.6);
      else if (event.key === "-") this.zoom.by(1 / 1.6);
      else if (event.key === "0") this.zoom.by(1 / this.zoom.scale);
      else return;
      event.preventDefault();
    });
    this.dialog.addEventListener("close", () => this.closed());
    this.resizer = new ResizeObserver(() => this.fit());
    this.swipe();
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  // Closes it because what is done next leads elsewhere.
  leave() {
    this.isLeft = true;
    this.close();
  }

  closed() {
    Viewer.current = null;
    this.resizer.disconnect();
    this.dialog.remove();
    leavePhoto(this.isLeft);
    this.source.closed?.(this.listed);
  }

  // Boxes are seen where one points, or all the time when asked for.
  showBoxes() {
    this.names.setAttribute("aria-pressed", String(this.frame.classList.toggle("has-boxes")));
  }

  // The faces are beside the photo; on a phone in a sheet over it.
  showFaces(on) {
    this.hasFaces = on;
    this.dialog.classList.toggle("has-faces", on);
    this.sheet.setAttribute("aria-expanded", String(on));
  }

  show() {
    Viewer.current?.close();
    Viewer.current = this;
    document.body.append(this.dialog);
    this.showFaces(innerWidth > 800);
    this.dialog.showModal();
    this.resizer.observe(this.stage);
    this.draw();
  }

  // What is looked at: a hit, or beside it a photo that it stands for.
  get hit() {
    return this.beside ?? this.listed;
  }

  get listed() {
    return this.source.hits()[this.source.index];
  }

  async peek(id) {
    const { listed } = this;
    try {
      const beside = id === listed.photo.id ? null : { photo: await api.photo(id), matches: [] };
      if (this.listed !== listed || !this.dialog.open) return; // another step was taken meanwhile
      this.beside = beside;
      this.draw();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async turn(step) {
    const near = this.source.index + step;
    if (near >= this.source.hits().length - 3 || (near < 3 && this.source.hasBefore?.())) await this.source.more?.();
    const to = this.source.index + step;
    if (to < 0 || to >= this.source.hits().length || !this.dialog.open) return;
    this.source.index = to;
    this.beside = null;
    this.draw();
  }

  fit() {
    const photo = this.hit?.photo;
    if (!photo) return;
    const { clientWidth, clientHeight } = this.stage;
    const room = photo.kind === "video" ? 72 : 16; // the strip is below a video
    const scale = Math.min((clientWidth - 16) / photo.width, (clientHeight - room) / photo.height);
    this.base = [photo.width * scale, photo.height * scale];
    this.size = this.base.map((side) => side * this.zoom.scale);
    const lift = photo.kind === "video" ? -28 : 0;
    Object.assign(this.frame.style, {
      width: `${this.size[0]}px`,
      height: `${this.size[1]}px`,
      backgroundColor: photo.colour ?? "",
      translate: `calc(-50% + ${this.zoom.x + this.swiped}px) calc(-50% + ${this.zoom.y + lift}px)`,
    });
    this.stage.classList.toggle("is-zoomed", this.zoom.scale > 1);
    this.zoomer[0].disabled = this.zoom.scale <= 1;
    this.sharpen(photo);
    if (this.tags) this.placeTags();
  }

  // The file itself, once the smaller picture is not sharp enough any more.
  sharpen(photo) {
    const image = this.frame.querySelector("img");
    if (
      !image ||
      image.dataset.sharp ||
      this.zoom.scale <= 1 ||
      Math.max(...this.size) * devicePixelRatio <= SMALL ||
      !SHARP.test(photo.name)
    )
      return;
    image.dataset.sharp = "true";
    const sharp = new Image();
    sharp.onload = () => {
      if (image.isConnected) image.src = sharp.src;
    };
    sharp.src = urls.file(photo);
  }

  draw() {
    const hit = this.hit;
    if (!hit) {
      this.dialog.close();
      return;
    }
    const { photo } = hit;
    enterPhoto(photo.id);
    this.zoom.reset();
    for (const button of this.zoomer) button.hidden = photo.kind === "video";
    const times = photo.kind === "video" ? ` ${clock(photo.from)}-${clock(photo.to)}` : "";
    this.title.textContent = whenTaken(photo);
    this.about.textContent = `${photo.name}${times}${SOURCES[photo.taken_from] ?? ""}${photo.note ? ` (${photo.note})` : ""}`;
    this.open.href = urls.file(photo);
    this.download.href = urls.download(photo);
    this.previous.disabled = this.source.index === 0 && !this.source.hasBefore?.();
    this.next.disabled = this.source.index >= this.source.hits().length - 1 && !this.source.hasMore?.();
    this.tags = null;
    this.player = photo.kind === "video" ? new ShotPlayer(photo, (boxes) => this.move(boxes)) : null;
    this.strip.element.replaceChildren();
    if (this.player) this.strip.show(photo).catch(() => {});
    this.fit();
    this.tagging.turn(false);
    this.tagging.button.hidden = photo.kind === "video";
    this.faces(hit, []);
    for (const step of [1, -1]) this.preload(this.source.hits()[this.source.index + step]?.photo);
    api
      .photo(photo.id)
      .then((details) => {
        if (this.hit === hit) this.faces(hit, details.faces, details.tags);
      })
      .catch(() => {});
  }

  preload(photo) {
    if (photo && photo.kind !== "video") new Image().src = urls.thumbnail(photo, SMALL);
  }

  faces(hit, known, tags = []) {
    const { photo } = hit;
    const who = identified(hit, known, this.act.savedOf);
    if (this.player) this.player.tracks = known.map((face) => face.track ?? []);
    const image = this.player
      ? this.player.video
      : this.frame.querySelector("img")?.dataset.photo === photo.id
        ? this.frame.querySelector("img")
        : h("img", { src: urls.thumbnail(photo, 1600), alt: photo.name, "data-photo": photo.id });
    const targets = photo.faces.map((face, number) => this.target(hit, face, number, who[number]));
    this.tags = photo.faces.flatMap((face, number) => {
      const named = who[number];
      return named
        ? [
            {
              number,
              box: face.box,
              text: called(named),
              element: h(
                "span",
                { class: `tag ${bandOf(named)} ${named.match ? "" : "known"}`, title: certainty(named) },
                h("span", { class: "who" }, called(named)),
              ),
            },
          ]
        : [];
    });
    this.targets = targets;
    const tagged = tags
      .filter(({ box, face }) => box && face === null)
      .map(({ person, box }) =>
        h("div", { class: "tagged", style: boxStyle(box, photo) }, h("span", { class: "tag known" }, person)),
      );
    targets.push(...tagged);
    if (image.isConnected) {
      // a video that is taken out stops
      [...this.frame.children].forEach((child) => child !== image && child.remove());
      this.frame.append(...targets, ...this.tags.map((tag) => tag.element));
    } else this.frame.replaceChildren(image, ...targets, ...this.tags.map((tag) => tag.element));
    this.placeTags();
    this.side.show(
      hit,
      who,
      targets,
      this.listed?.alike?.length ? [this.listed.photo, ...this.listed.alike] : [],
      tags,
    );
  }

  // Boxes and names follow the faces of a video; whoever is not seen has none.
  move(boxes) {
    if (!boxes.length || !this.tags) return;
    boxes.forEach((box, number) => {
      if (!this.targets[number]) return;
      this.targets[number].hidden = !box;
      if (box) Object.assign(this.targets[number].style, boxStyle(box, this.hit.photo));
    });
    for (const tag of this.tags) {
      tag.element.hidden = !boxes[tag.number];
      tag.box = boxes[tag.number] ?? tag.box;
    }
    this.placeTags();
  }

  placeTags() {
    tagPlaces(this.tags, this.hit.photo, ...this.size).forEach((place, number) =>
      Object.assign(this.tags[number].element.style, place ?? { left: "-999px" }),
    );
  }

  target(hit, face, number, who) {
    const choose = () => {
      this.leave();
      if (!who?.match) this.act.find(hit.photo, number, who?.saved);
      else if (who.saved) go(`people/${who.saved.id}`);
      else this.act.example(who.match, hit.photo, number);
    };
    const name = who ? called(who) : `face ${number + 1}`;
    const label = !who?.match
      ? `Find more photos of ${name}`
      : who.saved
        ? `${name}: open their page`
        : `${name}: use this face as another example`;
    return h("button", {
      type: "button",
      class: `target ${who?.match ? `match ${bandOf(who)}` : ""}`,
      style: boxStyle(face.box, hit.photo),
      "data-face": number,
      "aria-label": label,
      onclick: choose,
    });
  }

  // The photo follows the finger, and the next one comes behind it.
  swipe() {
    let start = null;
    const listen = (name, call) => this.stage.addEventListener(name, call, { passive: true });
    const moveTo = (x) => {
      this.swiped = x;
      const step = x < 0 ? 1 : -1;
      const near = x && this.source.hits()[this.source.index + step]?.photo;
      if (near && this.near.dataset.photo !== near.id) {
        this.near.dataset.photo = near.id;
        this.near.src = urls.thumbnail(near, SMALL);
      }
      this.near.hidden = !near;
      this.near.style.translate = `${x + step * this.stage.clientWidth}px`;
      this.fit();
    };
    listen("touchstart", (event) => {
      start =
        event.touches.length === 1 && this.zoom.scale === 1 && !this.tagging.isOn ? event.touches[0].clientX : null;
    });
    listen("touchmove", (event) => {
      if (start !== null && event.touches.length === 1) moveTo(event.touches[0].clientX - start);
    });
    const end = async (event) => {
      const moved = start === null || event.type === "touchcancel" ? 0 : event.changedTouches[0].clientX - start;
      start = null;
      if (Math.abs(moved) > 60) await this.turn(moved > 0 ? -1 : 1);
      moveTo(0);
    };
    listen("touchend", end);
    listen("touchcancel", end);
  }
}

// One photo by itself, in the large view.
export async function viewPhoto(id) {
  try {
    const hits = [{ photo: await api.photo(id), matches: [] }];
    new Viewer({ hits: () => hits, index: 0 }, { find: findFace, savedOf: () => null }).show();
  } catch (error) {
    leavePhoto();
    toast(error.message, "error");
  }
}
