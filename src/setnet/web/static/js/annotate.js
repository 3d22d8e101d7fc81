// The questions of `setnet collect`: one face at a time with its photo, caption and best names, answered by keys.

import { get, post, ROOT } from "./api.js";
import { h, plural } from "./dom.js";
import { toast } from "./toasts.js";

const UNKNOWN_KEYS = new Set(["0", "u"]);
const picture = (question, part) => `${ROOT}/collect/questions/${question.id}/${part}`;

class Questions {
  constructor(section) {
    this.busy = false;
    this.question = null;
    this.progress = h("progress", { "aria-label": "Faces answered", max: 1, value: 0 });
    this.count = h("p", { class: "muted", id: "collect-count", "aria-live": "polite" });
    this.desk = h("div", { class: "collect-desk" });
    section.append(
      h("div", { class: "view-head" }, h("h1", { id: "collect-title" }, "Who is this?"), this.count),
      this.progress,
      this.desk,
    );
    addEventListener("keydown", (event) => this.pressed(event));
  }

  async change(call) {
    if (this.busy) return;
    this.busy = true;
    try {
      const answer = await call();
      this.question = answer.question;
      this.draw(answer.state);
    } catch (error) {
      toast(error.message, "error");
    } finally {
      this.busy = false;
    }
  }

  draw(state) {
    this.progress.max = Math.max(1, state.questions);
    this.progress.value = state.answered;
    this.count.textContent = `${state.answered.toLocaleString()} of ${plural(state.questions, "face")} answered`;
    const question = this.question;
    if (!question) {
      this.desk.replaceChildren(
        h(
          "div",
          { class: "empty" },
          h("h2", {}, "All answered"),
          h("p", {}, "Next: setnet collect result RUN --out DIR"),
          this.act("z", "Undo the last answer", () => this.undo()),
        ),
      );
      return;
    }
    this.desk.replaceChildren(
      this.photo(question),
      h(
        "div",
        { class: "collect-side" },
        h("img", {
          class: "collect-face",
          src: picture(question, "face"),
          alt: "The face in question",
          width: 160,
          height: 160,
        }),
        h("blockquote", { class: "collect-text" }, question.text),
        h(
          "ol",
          { class: "collect-names" },
          question.best.map((best, place) => this.name(best, place, question)),
        ),
        h(
          "div",
          { class: "collect-acts" },
          this.act("u", "Unknown", () => this.answer("unknown")),
          this.act("d", "Drop photo", () => this.answer("drop photo")),
          this.act("z", "Undo", () => this.undo()),
        ),
      ),
    );
  }

  photo(question) {
    const [x0, y0, x1, y1] = question.box;
    const share = (part, whole) => `${(100 * part) / whole}%`;
    return h(
      "figure",
      { class: "collect-photo" },
      h("img", {
        src: picture(question, "photo"),
        alt: "The photo",
        style: { aspectRatio: `${question.width} / ${question.height}` },
      }),
      h("div", {
        class: "collect-box",
        style: {
          left: share(x0, question.width),
          top: share(y0, question.height),
          width: share(x1 - x0, question.width),
          height: share(y1 - y0, question.height),
        },
      }),
    );
  }

  name(best, place, question) {
    const searched = question.query.includes(best.name);
    return h(
      "li",
      {},
      h(
        "button",
        { type: "button", class: "button", "data-key": place + 1, onclick: () => this.answer("name", best.name) },
        h("kbd", {}, String(place + 1)),
        h("span", { class: "collect-name" }, best.name),
        searched && h("span", { class: "collect-mark" }, "in the query"),
        h("span", { class: "muted small" }, best.score.toFixed(2)),
      ),
    );
  }

  act(key, text, onclick) {
    return h("button", { type: "button", class: "button", "data-key": key, onclick }, h("kbd", {}, key), text);
  }

  answer(answer, name = null) {
    if (this.question) this.change(() => post("/collect/answers", { question: this.question.id, answer, name }));
  }

  undo() {
    this.change(() => post("/collect/undo", {}));
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest?.("input, select, textarea, dialog")) return;
    const key = event.key.toLowerCase();
    const best = this.question?.best[Number(key) - 1];
    if (best) this.answer("name", best.name);
    else if (UNKNOWN_KEYS.has(key)) this.answer("unknown");
    else if (key === "d") this.answer("drop photo");
    else if (key === "z") this.undo();
    else return;
    event.preventDefault();
  }
}

const questions = new Questions(document.getElementById("questions"));
await questions.change(() => get("/collect/next"));
document.documentElement.dataset.ready = "";
