// The index: folders, a running index as it goes, and what could not be read.

import { api } from "../api.js";
import { confirmed } from "../dialogs.js";
import { h, icon, iconButton, plural } from "../dom.js";
import { toast } from "../toasts.js";
import { chosenFolder } from "./folder_browser.js";
import { duration, expectRun, isGrouping, isRunning, timeLeft, watchRun } from "./run_events.js";

export class IndexView {
  // changed(): photos came or went; forgotten(): everything was deleted.
  constructor(section, { changed, forgotten }) {
    this.changed = changed;
    this.forgotten = forgotten;
    this.folder = h("input", {
      type: "text",
      id: "new-folder",
      placeholder: "/home/me/Pictures",
      autocomplete: "off",
      maxlength: 4096,
    });
    this.prune = h("input", { type: "checkbox", id: "prune" });
    this.retry = h("input", { type: "checkbox", id: "retry" });
    this.folders = h("ul", { class: "folders" });
    this.again = h(
      "button",
      { type: "button", class: "button", "data-writes": true, onclick: () => this.start([]) },
      "Look for new photos",
    );
    this.run = h("section", { class: "panel", "aria-labelledby": "run-title" });
    this.failures = h("section", { class: "panel wide", "aria-labelledby": "failures-title" });
    this.forgetting = h(
      "div",
      { class: "danger-zone", "data-writes": true, hidden: true },
      h(
        "div",
        {},
        h("h2", {}, "Forget everything"),
        h(
          "p",
          { class: "muted small" },
          "Deletes all faces, people and thumbnails from this machine. Your photos stay as they are.",
        ),
      ),
      h(
        "button",
        { type: "button", class: "button danger", id: "forget-everything", onclick: () => this.forgetEverything() },
        "Forget everything…",
      ),
    );
    section.append(
      h(
        "div",
        { class: "view-head" },
        h("h1", { id: "index-title" }, "Library"),
        h("p", { class: "muted", id: "index-size" }),
      ),
      h(
        "div",
        { class: "panels" },
        h(
          "section",
          { class: "panel", "aria-labelledby": "folders-title" },
          h("h2", { id: "folders-title" }, "Folders"),
          this.folders,
          h(
            "form",
            { "data-writes": true, onsubmit: (event) => this.add(event) },
            h(
              "div",
              { class: "field" },
              h("label", { for: "new-folder" }, "Add a folder of this machine"),
              h(
                "div",
                { class: "row" },
                this.folder,
                h(
                  "button",
                  { type: "button", class: "button", id: "browse-folders", onclick: () => this.browse() },
                  icon("folder"),
                  "Browse…",
                ),
                h("button", { type: "submit", class: "button primary" }, "Add it"),
              ),
            ),
            h("label", { class: "check" }, this.prune, "Remove photos whose files are gone"),
            h("label", { class: "check" }, this.retry, "Try files again that failed before"),
          ),
          h("div", {}, this.again),
        ),
        this.run,
        this.failures,
      ),
      this.forgetting,
    );
    watchRun((job, hasEnded) => {
      if (!section.hidden) this.draw(job);
      if (hasEnded) this.loadFailures();
    });
  }

  show(status) {
    this.status = status;
    document.getElementById("index-size").textContent =
      `${plural(status.photos, "photo")}, ${plural(status.faces, "face")}`;
    this.folders.replaceChildren(
      ...(status.folders.length
        ? status.folders.map((folder) =>
            h(
              "li",
              {},
              h("span", { class: "path" }, folder),
              iconButton("trash", `Forget the photos in ${folder}`, () => this.forget(folder), { "data-writes": true }),
            ),
          )
        : [h("li", { class: "muted" }, "No folder yet.")]),
    );
    this.forgetting.hidden = !(status.photos || status.people);
    this.again.hidden = status.folders.length === 0;
    this.draw(status.index);
    this.loadFailures();
  }

  async add(event) {
    event.preventDefault();
    const folder = this.folder.value.trim();
    if (!folder) {
      this.folder.focus();
      return;
    }
    if (await this.start([folder])) this.folder.value = "";
  }

  async browse() {
    try {
      const folder = await chosenFolder();
      if (folder) this.folder.value = folder;
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async start(folders, { prune = this.prune.checked, pruneMany = false } = {}) {
    expectRun();
    try {
      this.draw(await api.startIndex({ folders, prune, prune_many: pruneMany, retry: this.retry.checked }));
      this.changed();
      return true;
    } catch (error) {
      toast(error.message, "error");
      return false;
    }
  }

  async stop() {
    try {
      this.draw(await api.stopIndex());
    } catch (error) {
      toast(error.message, "error");
    }
  }

  draw(job) {
    this.job = job;
    const running = isRunning(job);
    this.again.disabled = running;
    if (running) this.failures.hidden = true;
    const heading = {
      idle: "Nothing is running",
      running: isGrouping(job) ? "Grouping faces" : "Scanning photos",
      stopping: "Stopping…",
      done: "Up to date",
      stopped: "Stopped",
      failed: "The run failed",
    }[job.state];
    const had = this.run.querySelector("#stop-index") === document.activeElement && running;
    this.run.replaceChildren(h("h2", { id: "run-title" }, heading), ...this.details(job, running));
    if (had) this.run.querySelector("#stop-index")?.focus();
  }

  details(job, running) {
    const p = job.progress;
    if (running && isGrouping(job)) {
      return [
        h("progress", { max: Math.max(p.total, 1), value: p.done, "aria-label": "Faces grouped" }),
        h(
          "p",
          { class: "muted", role: "status" },
          "The photos can be searched already. Whoever is in them appears under People in a moment.",
        ),
        this.stopper(job),
      ];
    }
    if (running) {
      const left = p?.seconds_left ? ` · ${timeLeft(p.seconds_left)}` : "";
      return [
        h(
          "progress",
          p
            ? { max: Math.max(p.total, 1), value: p.done, "aria-label": "Photos scanned" }
            : { "aria-label": "Photos scanned" },
        ),
        h(
          "p",
          { class: "muted", role: "status" },
          p
            ? `${p.done.toLocaleString()} of ${plural(p.total, "photo")} · ${p.rate.toFixed(1)} per second${left}`
            : "Reading the folders…",
        ),
        p && facts({ faces: p.faces, failed: p.failed, unchanged: p.unchanged }),
        this.stopper(job),
      ].filter(Boolean);
    }
    const r = job.report;
    if (job.error) return [h("p", { class: "notice error", role: "alert" }, job.error)];
    if (!r)
      return [
        h(
          "p",
          { class: "muted", "data-writes": true },
          "Add a folder, or look for new photos in those you have. Searching goes on meanwhile.",
        ),
      ];
    const lines = [
      h("p", { class: "muted", role: "status" }, `${plural(r.scanned, "file")} scanned in ${duration(r.seconds)}.`),
      facts({ new: r.added + r.copied, changed: r.changed, moved: r.moved, removed: r.removed, faces: r.faces }),
    ]; // the list below says how many could not be read
    if (r.vanished_count) lines.push(this.vanished(job, r));
    if (r.interrupted)
      lines.push(h("p", { class: "notice" }, "What was found so far is kept. The next run goes on from there."));
    for (const folder of r.unreadable)
      lines.push(h("p", { class: "notice error" }, `${folder.folder}: ${folder.reason}`));
    if (this.status?.faces)
      lines.push(h("div", {}, h("a", { class: "button", href: "#people" }, "See who is in your photos")));
    return lines;
  }

  // More than a tenth of the photos are not removed unasked: a folder that was moved or a disk that is not there looks the same.
  vanished(job, { vanished_count: count, prune_refused: refused }) {
    const gone = `${plural(count, "photo")} of the library can no longer be found`;
    if (!refused)
      return h("p", { class: "notice" }, `${gone}. Tick “Remove photos whose files are gone” to drop them.`);
    const remove = async () => {
      const sure = await confirmed({
        title: `Remove ${plural(count, "photo")}?`,
        text: "What is known of them is deleted from this machine. If their files come back, they are scanned again.",
        action: "Remove",
        danger: true,
      });
      if (sure) this.start(job.folders, { prune: true, pruneMany: true });
    };
    return h(
      "div",
      { class: "notice", id: "prune-refused" },
      h("p", {}, `${gone}: more than a tenth of all, so none was removed. Was a folder moved, or is a disk missing?`),
      h(
        "button",
        { type: "button", class: "button compact", "data-writes": true, onclick: remove },
        "Remove them all the same",
      ),
    );
  }

  stopper(job) {
    return h(
      "div",
      { "data-writes": true },
      h(
        "button",
        {
          type: "button",
          class: "button",
          id: "stop-index",
          disabled: job.state === "stopping",
          onclick: () => this.stop(),
        },
        "Stop",
      ),
    );
  }

  async loadFailures() {
    try {
      const { failures, total } = await api.failures();
      this.failures.hidden = total === 0 || isRunning(this.job); // a run counts its own
      this.failures.replaceChildren(
        h("h2", { id: "failures-title" }, `${plural(total, "file")} could not be read`),
        h(
          "ul",
          { class: "failures" },
          failures.map((f) =>
            h("li", {}, h("span", { class: "path" }, f.photo), h("span", { class: "muted small" }, f.reason)),
          ),
        ),
      );
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async forgetEverything() {
    const sure = await confirmed({
      title: "Forget everything?",
      text: "All faces, saved people and thumbnails of this library are deleted from the disk. This cannot be undone. Your photos stay as they are.",
      action: "Forget everything",
      danger: true,
    });
    if (!sure) return;
    try {
      await api.forgetEverything();
      toast("Everything was forgotten.");
      await this.forgotten();
    } catch (error) {
      toast(error.message, "error");
    }
  }

  async forget(folder) {
    const sure = await confirmed({
      title: "Forget this folder?",
      text: `What is known of the photos in ${folder} is deleted from this machine. The photos stay as they are.`,
      action: "Forget",
      danger: true,
    });
    if (!sure) return;
    try {
      const { photos } = await api.forgetFolder(folder);
      toast(`${plural(photos, "photo")} forgotten.`);
    } catch (error) {
      toast(error.message, "error");
    }
    this.changed();
  }
}

function facts(numbers) {
  return h(
    "dl",
    { class: "facts" },
    Object.entries(numbers).map(([name, value]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, value.toLocaleString())),
    ),
  );
}
