// What an empty library is told to do first, and how an index run goes, above the photos.

import { api } from "../api.js";
import { h, icon, plural } from "../dom.js";
import { toast } from "../toasts.js";
import { chosenFolder } from "./folder_browser.js";
import { expectRun, isGrouping, isRunning, timeLeft, watchRun } from "./run_events.js";

export class FirstRun {
  constructor() {
    this.choose = h(
      "button",
      {
        type: "button",
        class: "button primary large",
        id: "choose-folder",
        "data-writes": true,
        onclick: () => this.begin(),
      },
      icon("folder"),
      "Choose a folder of photos",
    );
    this.welcome = h(
      "div",
      { class: "welcome", hidden: true },
      h("h2", {}, "No photos yet"),
      h(
        "p",
        {},
        "Show setnet a folder. It finds the faces in the photos, and then the photos with the people you ask for. Nothing leaves this machine, and no photo is changed.",
      ),
      this.choose,
    );
    this.bar = h("progress", { "aria-label": "Photos scanned" });
    this.text = h("p", { role: "status" });
    this.link = h("a", { class: "button compact" });
    this.strip = h("div", { class: "run-strip", hidden: true }, h("div", {}, this.text, this.bar), this.link);
    this.element = h("div", {}, this.welcome, this.strip);
    watchRun((job, hasEnded) => this.run(job, hasEnded));
  }

  draw(status) {
    if (isRunning(status.index)) this.run(status.index, false);
  }

  photos(total) {
    this.isEmpty = total === 0;
    this.welcome.hidden = !this.isEmpty || this.isRunning;
  }

  run(job, hasEnded) {
    this.isRunning = isRunning(job);
    this.welcome.hidden = !this.isEmpty || this.isRunning;
    if (!this.isRunning && !hasEnded) return;
    this.strip.hidden = false;
    this.bar.hidden = !this.isRunning;
    if (hasEnded) {
      this.end(job);
      return;
    }
    const { progress } = job;
    this.link.href = "#index";
    this.link.textContent = "Details";
    if (!progress?.total) {
      this.text.textContent = "Reading the folders…";
      this.bar.removeAttribute("value");
      return;
    }
    this.bar.max = progress.total;
    this.bar.value = progress.done;
    const left = progress.seconds_left ? `, ${timeLeft(progress.seconds_left)}` : "";
    this.text.textContent = isGrouping(job)
      ? "Finding out who is who…"
      : `${progress.done.toLocaleString()} of ${plural(progress.total, "photo")} scanned${left}.${this.isEmpty ? " They appear below as they are ready." : ""}`;
  }

  end(job) {
    this.text.textContent = job.error
      ? `The run failed: ${job.error}`
      : job.state === "stopped"
        ? "Stopped. What was found is kept."
        : "All photos were scanned.";
    this.link.href = job.error ? "#index" : "#people";
    this.link.textContent = job.error ? "Details" : "See who is in them";
  }

  async begin() {
    try {
      const folder = await chosenFolder();
      if (!folder) return;
      expectRun();
      const job = await api.startIndex({ folders: [folder], prune: false, retry: false });
      this.run(job, false);
    } catch (error) {
      toast(error.message, "error");
    }
  }
}
