// Choosing a folder of this machine by walking through its folders.

import { api } from "../api.js";
import { answered } from "../dialogs.js";
import { h, icon, iconButton, plural } from "../dom.js";

// Resolves to the path of a folder, or to null. Where the server lists none, its path is typed.
export async function chosenFolder() {
  try {
    const start = await api.folders(null);
    const begin = start.pictures ?? start.folders[0]?.path;
    const home = begin ? await api.folders(begin).catch(() => start) : start;
    return await new FolderBrowser(home).open();
  } catch (error) {
    if (error.status !== 403) throw error;
    return answered({
      title: "Which folder has your photos?",
      label: "Its path on the machine of the server",
      action: "Look at its photos",
    });
  }
}

class FolderBrowser {
  constructor(listing) {
    this.way = h("p", { class: "way" });
    this.list = h("ul", { class: "folder-list" });
    this.status = h("p", { class: "grow muted small", role: "status" });
    this.use = h(
      "button",
      { type: "button", class: "button primary", onclick: () => this.dialog.close(this.path) },
      "Use this folder",
    );
    this.dialog = h(
      "dialog",
      { class: "sheet folder-sheet", id: "folder-browser", "aria-labelledby": "folder-title" },
      h(
        "header",
        {},
        h("div", {}, h("h2", { id: "folder-title" }, "Which folder has your photos?"), this.way),
        iconButton("close", "Close", () => this.dialog.close("")),
      ),
      h("div", { class: "body" }, this.list),
      h("footer", {}, this.status, this.use),
    );
    this.show(listing);
  }

  open() {
    return new Promise((resolve) => {
      this.dialog.addEventListener("close", () => {
        this.dialog.remove();
        resolve(this.dialog.returnValue || null);
      });
      document.body.append(this.dialog);
      this.dialog.showModal();
      this.list.querySelector("button")?.focus();
    });
  }

  async enter(path) {
    try {
      this.show(await api.folders(path));
    } catch (error) {
      this.status.textContent = error.message;
    }
  }

  show({ path, parent, folders, photos, has_more: hasMore }) {
    this.path = path;
    this.way.textContent = path ?? "This machine";
    this.use.disabled = path === null;
    const line = (picture, name, to, ...end) =>
      h(
        "li",
        {},
        h("button", { type: "button", onclick: () => this.enter(to) }, icon(picture), h("span", {}, name), ...end),
      );
    this.list.replaceChildren(
      ...(path === null ? [] : [line("back", "Up", parent ?? null)]),
      ...folders.map((folder) =>
        line("folder", path === null ? folder.path : folder.name, folder.path, icon("forward")),
      ),
    );
    if (!folders.length) this.list.append(h("li", { class: "muted none" }, "No folder in it."));
    this.status.textContent =
      path === null
        ? ""
        : [
            photos ? `${plural(photos, "photo")} here` : "No photo right here",
            folders.length && "folders in it are scanned too",
            hasMore && "not everything is listed",
          ]
            .filter(Boolean)
            .join(", ");
    this.list.scrollTop = 0;
    if (this.dialog.open) (this.list.querySelectorAll("button")[path === null ? 0 : 1] ?? this.use).focus();
  }
}
