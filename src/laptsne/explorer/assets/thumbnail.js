// Images of the points: arrays that come with the data, and data URIs in columns.

import { element } from "./dom.js";

const SHOWN = 112; // pixels, about

/** Whether a text is an image that is inside the file. Nothing is ever requested. */
export const isImage = (text) => /^data:image\/(png|jpeg|gif|webp|avif);base64,/i.test(text);

/** The image of a row, in a list that is empty if there is none. */
export function thumbnail({ shape, pixels }, row) {
  if (!pixels) return [];
  const [height, width, channels] = shape;
  const canvas = element("canvas", "thumbnail");
  Object.assign(canvas, { width, height });
  const image = new ImageData(width, height);
  const start = row * height * width * channels;
  for (let i = 0; i < width * height; i++) {
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = pixels[start + i * channels + (channels === 3 ? c : 0)];
    image.data[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.width = `${width * Math.max(1, Math.floor(SHOWN / Math.max(width, height)))}px`;
  return [canvas];
}
