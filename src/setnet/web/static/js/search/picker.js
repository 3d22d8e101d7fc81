// The dialog that shows uploaded photos with their faces, to click the right ones.

import { go } from "../address.js";
import { api } from "../api.js";
import { Press } from "../device.js";
import { h, iconButton, plural } from "../dom.js";
import { toast } from "../toasts.js";
import { called } from "../saved_people.js";
import { keepUpload } from "../uploads.js";
import { addExamples, addPerson, label, query } from "./query.js";
import { queryValues } from "./query_address.js";

const MOST_FILES = 12;

export function pickFaces(files, target = null) {
  const photos = [...files].slice(0, MOST_FILES);
  if (files.length > MOST_FILES) toast(`The first ${MOST_FILES} photos are taken.`);
  if (photos.length) new Picker(photos, target).open();
}

export function chooseFiles(target = null) {
  const input = h("input", {
    type: "file",
    accept: "image/*,.heic,.heif,.avif",
    multiple: true,
    class: "visually-hidden",
    "aria-hidden": "true",
    tabindex: "-1",
  });
  input.addEventListener("change", () => {
    pickFaces(input.files, target);
    input.remove();
  });
  input.addEventListener("cancel", () => input.remove());
  document.body.append(input);
  input.click();
}

class Picker {
  constructor(files, target) {
    this.chosen = new Map(); // face id -> number of its photo
    this.examples = new Map(); // face id -> the example of the query that it would be
    this.known = new Map(); // face id -> the saved person whose it surely is
    this.aborter = new AbortController();
    this.as = h("select", { "aria-label": "Add the selected faces as" });
    this.add = h("button", { type: "button", class: "button primary", onclick: () => this.finish() });
    this.status = h("p", { class: "grow muted small", role: "status" });
    this.target = target;
    this.body = h("div", { class: files.length > 1 ? "body uploads" : "body" });
    this.columns = files.length;
    this.groups = null; // the chosen faces by person, as the server sees it
    this.dialog = h(
      "dialog",
      { class: "sheet", id: "picker", "aria-labelledby": "picker-title" },
      h(
        "header",
        {},
        h("h2", { id: "picker-title" }, target ? `More faces of ${label(target)}` : `${Press()} the faces to look for`),
        iconButton("close", "Close", () => this.dialog.close()),
      ),
      this.body,
      h("footer", {}, this.status, this.as, this.add),
    );
    this.dialog.addEventListener("close", () => {
      this.aborter.abort();
      this.dialog.remove();
    });
    files.forEach((file, number) => this.look(file, number));
    this.update();
  }

  open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
  }

  async look(file, number) {
    const canvas = h(
      "div",
      { class: "canvas" },
      h("div", { class: "skeleton", style: { width: "320px", height: "240px" } }),
      h("p", { class: "waiting" }, "Finding faces…"),
    );
    const caption = h("div", { class: "caption" }, h("span", {}, file.name || "Pasted photo"));
    const part = h("figure", { class: "upload" }, canvas, caption);
    this.body.append(part);
    try {
      const seen = await this.patiently(() => api.faces(file, this.aborter.signal), caption);
      const upload = await keepUpload(
        file,
        seen.faces.map((face) => face.id),
      );
      seen.faces.forEach(({ id, person, sure }, face) => {
        this.examples.set(id, { id, upload, face });
        if (sure && called(person)) this.known.set(id, called(person));
      });
      this.show(seen, canvas, caption, number);
      if (this.columns === 1 && seen.faces.length === 1 && !this.target) this.finish(); // nothing is to be chosen
    } catch (error) {
      if (error.name === "AbortError") return;
      canvas.replaceWith(h("p", { class: "notice error", role: "alert" }, error.message));
    }
  }

  // The server refuses rather than queues without end; its photos come one after another.
  async patiently(call, caption) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await call();
      } catch (error) {
        if (error.status !== 503 || attempt >= 30) throw error;
        if (attempt === 2) caption.append(h("span", {}, "the server is busy, waiting…"));
        await new Promise((resolve) => setTimeout(resolve, 700));
      }
    }
  }

  show(seen, canvas, caption, number) {
    const narrow = canvas.parentElement.clientWidth || 320;
    const scale = Math.min(
      narrow / seen.width,
      (window.innerHeight * (this.columns > 1 ? 0.4 : 0.55)) / seen.height,
      1.5,
    );
    Object.assign(canvas.style, { width: `${seen.width * scale}px`, aspectRatio: `${seen.width} / ${seen.height}` });
    canvas.replaceChildren(h("img", { src: `data:image/jpeg;base64,${seen.preview}`, alt: "The photo you added" }));
    caption.replaceChildren(
      caption.firstChild,
      h("span", {}, seen.faces.length ? plural(seen.faces.length, "face") : "no face found"),
    );
    if (!seen.faces.length) {
      canvas.after(
        h(
          "p",
          { class: "notice" },
          "No face was found here. Try a photo where the face is larger, sharper or more frontal.",
        ),
      );
    }
    seen.faces.forEach((face, place) => {
      const [x0, y0, x1, y1] = face.box;
      const button = h("button", {
        type: "button",
        class: "pick",
        "aria-pressed": "false",
        "aria-label": `${this.known.get(face.id)?.name ?? "Face"}, ${place + 1} of ${seen.faces.length} from the left`,
        title: this.known.get(face.id)?.name,
        onclick: () => {
          this.toggle(face, number, button);
        },
        style: {
          left: `${(x0 / seen.width) * 100}%`,
          top: `${(y0 / seen.height) * 100}%`,
          width: `${((x1 - x0) / seen.width) * 100}%`,
          height: `${((y1 - y0) / seen.height) * 100}%`,
        },
      });
      canvas.append(button);
      if (seen.faces.length === 1) this.toggle(face, number, button);
    });
    this.update();
  }

  toggle(face, number, button) {
    const on = !this.chosen.has(face.id);
    if (on) this.chosen.set(face.id, number);
    else this.chosen.delete(face.id);
    button.setAttribute("aria-pressed", String(on));
    this.groups = null;
    this.update();
    this.group();
  }

  // Three photos may show three people or one: similar faces are grouped, and the user may regroup them.
  async group() {
    const ids = this.inOrder();
    if (ids.length < 2) return;
    try {
      const { groups } = await api.alike(ids);
      if (groups.flat().length !== this.chosen.size || !groups.flat().every((id) => this.chosen.has(id))) return;
      this.groups = groups;
      this.update();
    } catch {
      /* then it is for the user alone to say */
    }
  }

  // Photos are ready in any order; people keep the order in which they were given.
  inOrder() {
    return [...this.chosen].sort((a, b) => a[1] - b[1]).map(([id]) => id);
  }

  update() {
    const count = this.chosen.size;
    this.add.disabled = count === 0;
    this.add.replaceChildren(count > 1 ? `Add ${count} faces` : "Add this face");
    this.status.textContent = count ? `${plural(count, "face")} selected` : "No face selected yet";
    const before = this.as.value;
    const alike = this.groups?.length ?? count;
    const options = [["each", count > 1 ? `${count} new people` : "a new person"]];
    if (count > 1) options.push(["one", "one new person"]);
    if (alike > 1 && alike < count) options.unshift(["alike", `${alike} new people, as faces look alike`]);
    for (const person of query.people) options.push([person.key, `more of ${label(person)}`]);
    this.as.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
    const valid = options.some(([value]) => value === before);
    if (this.target && !before) this.as.value = this.target.key;
    else if (valid && this.touched) this.as.value = before;
    else if (!this.target) this.as.value = alike === count ? "each" : alike === 1 ? "one" : "alike";
    else this.as.value = this.target.key;
    this.as.onchange = () => {
      this.touched = true;
    };
  }

  // Looks for whoever it is: a saved person who was recognised, or somebody new.
  ask(example) {
    const saved = this.known.get(example.id);
    if (!saved) addPerson({ examples: [example] });
    else if (!query.people.some((person) => person.saved?.id === saved.id)) addPerson({ saved });
    else toast(`${saved.name} is in the query already.`);
  }

  finish() {
    const of = (ids) => ids.map((id) => this.examples.get(id));
    const examples = of(this.inOrder());
    try {
      if (this.as.value === "each") examples.forEach((example) => this.ask(example));
      else if (this.as.value === "one") addPerson({ examples });
      else if (this.as.value === "alike") this.groups.forEach((ids) => addPerson({ examples: of(ids) }));
      else
        addExamples(
          query.people.find((person) => person.key === this.as.value),
          examples,
        );
    } catch (error) {
      toast(error.message, "error");
    }
    this.dialog.close();
    go("search", queryValues());
  }
}

export function listenForDropsAndPastes(zone) {
  const images = (transfer) =>
    [...(transfer?.files ?? [])].filter((file) => !file.type || file.type.startsWith("image/"));
  let depth = 0;
  const over = (on) => zone().classList.toggle("is-over", on);
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  addEventListener("dragenter", (event) => {
    if (hasFiles(event)) {
      depth += 1;
      over(true);
    }
  });
  addEventListener("dragleave", (event) => {
    if (hasFiles(event)) {
      depth = Math.max(0, depth - 1);
      over(depth > 0);
    }
  });
  addEventListener("dragover", (event) => {
    if (hasFiles(event)) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    const card = /** @type {Element} */ (event.target).closest("[data-person]");
    const target = query.people.find((person) => person.key === card?.getAttribute("data-person")) ?? null;
    const files = images(event.dataTransfer);
    if (files.length) pickFaces(files, target);
    else toast("Only photos can be dropped here.", "error");
  });
  addEventListener("paste", (event) => {
    const files = images(event.clipboardData);
    if (files.length && !document.querySelector("dialog[open]")) pickFaces(files);
  });
}
