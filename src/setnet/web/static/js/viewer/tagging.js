// Somebody in the photo whose face was not found: a box drawn by hand, or only a name, kept as a tag.

import { api } from "../api.js";
import { h, iconButton } from "../dom.js";
import { askForName } from "../naming.js";
import { called } from "../saved_people.js";
import { toast, undoable } from "../toasts.js";

const SMALLEST = 8; // pixels on the screen: less is no box but a click

export class Tagging {
  // photo(): what is looked at; changed(): a tag came or went.
  constructor({ frame, photo, changed }) {
    this.frame = frame;
    this.photo = photo;
    this.changed = changed;
    this.isOn = false;
    this.button = iconButton("pencil", "Draw a box around somebody", () => this.turn(!this.isOn), {
      "aria-pressed": "false",
      "data-writes": true,
    });
    frame.addEventListener("pointerdown", (event) => this.isOn && this.down(event));
  }

  turn(on) {
    this.isOn = on;
    this.button.setAttribute("aria-pressed", String(on));
    this.frame.classList.toggle("is-drawing", on);
  }

  down(event) {
    event.preventDefault();
    const drawn = h("div", { class: "drawn" });
    this.frame.append(drawn);
    this.frame.setPointerCapture(event.pointerId);
    const { left, top, width, height } = this.frame.getBoundingClientRect();
    const inside = (value, most) => Math.min(Math.max(value, 0), most);
    const place = ({ clientX, clientY }) => [inside(clientX - left, width), inside(clientY - top, height)];
    const [x, y] = place(event);
    let sides = [x, y, x, y];
    const move = (next) => {
      const [toX, toY] = place(next);
      sides = [Math.min(x, toX), Math.min(y, toY), Math.max(x, toX), Math.max(y, toY)];
      const [x0, y0, x1, y1] = sides.map((side) => `${side}px`);
      Object.assign(drawn.style, { left: x0, top: y0, width: `calc(${x1} - ${x0})`, height: `calc(${y1} - ${y0})` });
    };
    const end = async (last) => {
      for (const [name, call] of Object.entries(listeners)) this.frame.removeEventListener(name, call);
      const isBox = last.type === "pointerup" && sides[2] - sides[0] > SMALLEST && sides[3] - sides[1] > SMALLEST;
      const scale = this.photo().width / width;
      if (isBox) await this.ask(sides.map((side) => Math.round(side * scale)));
      drawn.remove();
    };
    const listeners = { pointermove: move, pointerup: end, pointercancel: end };
    for (const [name, call] of Object.entries(listeners)) this.frame.addEventListener(name, call);
  }

  // Without a box somebody is anywhere in the photo.
  async ask(box = null) {
    const photo = this.photo();
    const name = await askForName({ title: "Who is this?", action: "Save" });
    if (!name) return;
    const person = called(name);
    if (!person) {
      toast(`Nobody saved is called ${name}: name one of their faces first.`, "error");
      return;
    }
    try {
      const { change } = await api.tag(photo.id, { person: person.id, box });
      this.turn(false);
      undoable(`${person.name} is in this photo.`, change, this.changed);
      this.changed();
    } catch (error) {
      toast(error.message, "error");
    }
  }
}
