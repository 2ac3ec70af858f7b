// The card of the point that was clicked: all its values in full, its images, and links.

import { element } from "./dom.js";
import { isImage, thumbnail } from "./thumbnail.js";

export class Card {
  constructor(panel, columns, pictures, onClose) {
    this.panel = panel;
    this.columns = columns;
    this.pictures = pictures;
    this.row = -1;
    panel.querySelector(".close").addEventListener("click", () => {
      this.hide();
      onClose();
    });
  }

  show(row) {
    this.row = row;
    this.panel.querySelector("h2").textContent = `Row ${row}`;
    const facts = element("dl");
    for (const column of this.columns) {
      const value = element("dd", column.isMissing(row) ? "missing" : "");
      value.append(...this.contents(column, row));
      facts.append(element("dt", "", column.name), value);
    }
    this.panel.querySelector(".contents").replaceChildren(...thumbnail(this.pictures, row), facts);
    this.panel.hidden = false;
    for (const box of [this.panel.parentElement, this.panel.closest("main")]) box.scrollTop = 0;
  }

  /** The value of a column: an image, or text with its links. */
  contents(column, row) {
    const text = column.text(row) || column.shown(row);
    if (isImage(text)) {
      const image = element("img");
      Object.assign(image, { src: text, alt: column.name });
      return [image];
    }
    const caption = column.captions?.[column.values[row]];
    return [...text.split(/(https?:\/\/[^\s<>"]+)/).map((part, i) => (i % 2 ? linked(part) : part)),
      ...(caption ? [element("small", "", caption)] : [])];
  }

  hide() {
    this.row = -1;
    this.panel.hidden = true;
  }
}

function linked(address) {
  const link = element("a", "", address);
  Object.assign(link, { href: address, target: "_blank", rel: "noopener noreferrer" });
  return link;
}
