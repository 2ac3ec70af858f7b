// Tooltip with the values and the image of the point under the pointer.

const MAX_FACTS = 14;

/** Create an element with a class and text. Text from the data enters the document only here, as textContent. */
function element(tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== "") made.textContent = text;
  return made;
}

class Tooltip {
  constructor(box, ring, columns, shape) {
    Object.assign(this, { box, ring, columns, shape, pixels: null, row: -1 });
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
      facts.append(element("dd", column.isMissing(row) ? "missing" : "", column.shown(row)));
    }
    this.box.replaceChildren(...(this.pixels ? [this.thumbnail(row)] : []), facts, element("p", "row", `row ${row}`));
  }

  thumbnail(row) {
    const [height, width, channels] = this.shape;
    const canvas = element("canvas");
    Object.assign(canvas, { width, height });
    const image = new ImageData(width, height);
    const start = row * height * width * channels;
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = this.pixels[start + i * channels + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    const factor = Math.max(1, Math.floor(112 / Math.max(width, height)));
    canvas.style.width = `${width * factor}px`;
    return canvas;
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
