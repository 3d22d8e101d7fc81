// Zooming into the photo of the large view: wheel, buttons, double click, two fingers; dragging moves what is enlarged.

const MOST = 8;
const DOUBLE = 2.5; // what a double click enlarges by
const DRAGGED = 6; // pixels from which a press is no click

export class Zoom {
  // changed(): `scale`, or the offset `x`, `y` of the middle of the photo in pixels, is another one. isOn(): whether there is a photo to zoom.
  constructor(stage, { changed, isOn, size }) {
    this.stage = stage;
    this.changed = changed;
    this.isOn = isOn;
    this.size = size;
    this.pointers = new Map();
    this.middle = [0, 0]; // between two fingers
    this.reset();
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("dblclick", (event) => {
      if (!event.target.closest("button, video")) this.by(this.scale > 1 ? 1 / this.scale : DOUBLE, this.from(event));
    });
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      stage.addEventListener(end, (event) => {
        this.pointers.delete(event.pointerId);
        this.spread = 0;
      });
    stage.addEventListener(
      "click",
      (event) => {
        if (this.isDrag) {
          event.stopPropagation();
          event.preventDefault();
        }
        this.isDrag = false;
      },
      true,
    );
  }

  reset() {
    Object.assign(this, { scale: 1, x: 0, y: 0 });
  }

  /**
   * Where an event is, from the middle of the stage.
   * @returns {[number, number]}
   */
  from({ clientX, clientY }) {
    const { left, top, width, height } = this.stage.getBoundingClientRect();
    return [clientX - left - width / 2, clientY - top - height / 2];
  }

  // Enlarges so that what is at the given place stays there.
  by(factor, [x, y] = [0, 0]) {
    if (!this.isOn()) return;
    const scale = Math.min(Math.max(this.scale * factor, 1), MOST);
    const ratio = scale / this.scale;
    this.scale = scale;
    this.moveTo(x - (x - this.x) * ratio, y - (y - this.y) * ratio);
  }

  moveTo(x, y) {
    const [width, height] = this.size();
    const most = (inside, around) => Math.max(0, (inside * this.scale - around) / 2);
    const keep = (value, limit) => Math.min(Math.max(value, -limit), limit);
    this.x = keep(x, most(width, this.stage.clientWidth));
    this.y = keep(y, most(height, this.stage.clientHeight));
    this.changed();
  }

  wheel(event) {
    if (!this.isOn()) return;
    event.preventDefault();
    this.by(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0018)), this.from(event));
  }

  down(event) {
    if (
      !this.isOn() ||
      event.target.closest(".turn, .strip, video") ||
      (event.pointerType === "mouse" && event.button !== 0)
    )
      return;
    this.isDrag = false;
    this.pointers.set(event.pointerId, event);
    this.spread = 0;
  }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (this.pointers.size === 2) {
      this.pointers.set(event.pointerId, event);
      this.pinch();
    } else if (this.scale > 1 && (this.isDrag || Math.hypot(dx, dy) > DRAGGED)) {
      this.pointers.set(event.pointerId, event);
      this.isDrag = true;
      this.moveTo(this.x + dx, this.y + dy);
    }
  }

  pinch() {
    const [a, b] = [...this.pointers.values()];
    const spread = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    const middle = this.from({ clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 });
    if (this.spread) {
      this.isDrag = true;
      this.by(spread / this.spread, middle);
      this.moveTo(this.x + middle[0] - this.middle[0], this.y + middle[1] - this.middle[1]);
    }
    [this.spread, this.middle] = [spread, middle];
  }
}
