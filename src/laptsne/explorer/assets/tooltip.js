// Tooltip with the values and the image of the point under the pointer.

import { element } from "./dom.js";
import { isImage, thumbnail } from "./thumbnail.js";

export const MAX_FACTS = 14;

export class Tooltip {
  constructor(box, ring, columns, pictures) {
    this.box = box;
    this.ring = ring;
    this.columns = columns;
    this.pictures = pictures;
    this.row = -1;
    this.chosen = new Set(columns.slice(0, MAX_FACTS));
  }

  show(row, place, size) {
    if (row !== this.row) this.fill(row);
    this.row = row;
    this.move(place, size);
  }

  hide() {
    this.row = -1;
    this.box.hidden = this.ring.hidden = true;
  }

  fill(row) {
    const facts = element("dl");
    for (const column of this.columns.filter((one) => this.chosen.has(one))) {
      facts.append(element("dt", "", column.name));
      const image = isImage(column.text(row));
      facts.append(element("dd", column.isMissing(row) || image ? "missing" : "", image ? "image" : column.shown(row)));
    }
    this.box.replaceChildren(...thumbnail(this.pictures, row), facts, element("p", "row", `row ${row}`));
  }

  /** Move the tooltip beside the point, on the side with more space. */
  move([x, y], size) {
    const stage = this.box.parentElement;
    const outside = x < 0 || y < 0 || x > stage.clientWidth || y > stage.clientHeight;
    this.box.hidden = this.ring.hidden = outside;
    if (outside) return;
    const [width, height] = [this.box.offsetWidth, this.box.offsetHeight];
    const left = x + 14 + width < stage.clientWidth ? x + 14 : x - 14 - width;
    const top = Math.min(Math.max(8, y - height / 2), stage.clientHeight - height - 8);
    this.box.style.transform = `translate(${Math.round(Math.max(4, left))}px, ${Math.round(Math.max(4, top))}px)`;
    this.ring.style.width = this.ring.style.height = `${size + 7}px`;
    this.ring.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
  }
}
