// A group opened: all its faces; wrong ones are deselected before it gets its name.

import { api, urls } from "../api.js";
import { isTouch, Press } from "../device.js";
import { h, icon, iconButton, plural } from "../dom.js";
import { faceImage } from "../face_picture.js";
import { NameField } from "../name_field.js";
import { toast } from "../toasts.js";
import { span } from "./dates.js";

const keyOf = (member) => `${member.photo}/${member.face}`;

export class GroupSheet {
  // act: {name(group, name, without) -> whether it was named, hide(group), show(group), find(group), view(member)}
  constructor(group, act) {
    this.group = group;
    this.act = act;
    this.without = new Map();
    this.faces = h("ul", { class: "faces-of-group" });
    this.more = h("button", { type: "button", class: "button", hidden: true, onclick: () => this.load() }, "Show more");
    this.status = h("p", { class: "muted small", role: "status" });
    this.field = new NameField({
      label: "Name this person",
      placeholder: "Name this person",
      accept: (name) => this.name(name),
      up: true,
    });
    this.dialog = h(
      "dialog",
      { class: "sheet", id: "group-sheet", "aria-labelledby": "group-title" },
      h(
        "header",
        {},
        h(
          "div",
          {},
          h("h2", { id: "group-title" }, "Who is this?"),
          h(
            "p",
            { class: "muted small" },
            [`${plural(group.faces, "face")} in ${plural(group.photos, "photo")}`, span(group.first, group.last)]
              .filter(Boolean)
              .join(", "),
          ),
        ),
        iconButton("close", "Close", () => this.dialog.close()),
      ),
      h(
        "div",
        { class: "body" },
        h(
          "p",
          { class: "muted", "data-writes": true },
          `Is one of these somebody else? ${Press()} it before you name the others.`,
        ),
        this.faces,
        h("div", {}, this.more),
      ),
      h(
        "footer",
        {},
        this.status,
        h("div", { "data-writes": true }, this.field.element),
        h(
          "button",
          { type: "button", class: "button primary", "data-writes": true, onclick: () => this.save() },
          "Save",
        ),
        h(
          "div",
          { class: "others" },
          h(
            "button",
            {
              type: "button",
              class: "button quiet compact",
              onclick: () => {
                this.dialog.close();
                act.find(group);
              },
            },
            "Find photos",
          ),
          h(
            "button",
            { type: "button", class: "button quiet compact", "data-writes": true, onclick: () => this.hide() },
            group.hidden ? "Show again" : "Nobody I know",
          ),
        ),
      ),
    );
    const named = (/** @type {CustomEvent} */ { detail }) => {
      if (detail === group.id) this.dialog.close();
    };
    document.addEventListener("people-named", named);
    this.dialog.addEventListener("close", () => {
      document.removeEventListener("people-named", named);
      this.dialog.remove();
    });
  }

  async open() {
    document.body.append(this.dialog);
    this.dialog.showModal();
    if (!isTouch()) this.field.focus(); // a phone's keyboard would cover the faces
    await this.load();
  }

  async load() {
    try {
      const page = await api.group(this.group.id, 120, this.cursor);
      this.cursor = page.cursor;
      this.more.hidden = !page.cursor;
      this.faces.append(
        ...page.members.map((member, number) => this.face(member, this.faces.children.length + number)),
      );
    } catch (error) {
      toast(error.message, "error");
    }
  }

  face(member, number) {
    const toggle = h(
      "button",
      {
        type: "button",
        class: "member",
        "aria-pressed": "true",
        "aria-label": `Face ${number + 1}${member.taken ? `, ${member.taken.slice(0, 10)}` : ""}`,
        onclick: () => this.toggle(member, toggle),
      },
      faceImage(urls.face(member)),
      h("span", { class: "mark" }, icon("check")),
    );
    return h(
      "li",
      {},
      toggle,
      iconButton("photo", `Open the photo of face ${number + 1}`, () => this.act.view(member), {
        class: "icon-button see",
      }),
    );
  }

  toggle(member, button) {
    const key = keyOf(member);
    if (!this.without.delete(key)) this.without.set(key, { photo: member.photo, face: member.face });
    button.setAttribute("aria-pressed", String(!this.without.has(key)));
    this.status.textContent = this.without.size ? `${plural(this.without.size, "face")} left out` : "";
  }

  save() {
    if (this.field.value.trim()) this.field.take(this.field.value.trim());
    else this.field.focus();
  }

  async name(name) {
    if (this.without.size >= this.group.faces) {
      toast("All faces are left out: at least one is needed.", "error");
      return;
    }
    if (await this.act.name(this.group, name, [...this.without.values()])) this.dialog.close();
    else this.field.focus();
  }

  async hide() {
    this.dialog.close();
    await (this.group.hidden ? this.act.show(this.group) : this.act.hide(this.group));
  }
}
