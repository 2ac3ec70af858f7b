// Start of the explorer in an HTML file.

import { documentBlocks, readData } from "./data.js";
import { Explorer } from "./explorer.js";
import { Link } from "./link.js";
import { linkState, readout } from "./state.js";

async function start() {
  const data = await readData(documentBlocks("data"));
  const explorer = /** @type {any} */ (new Explorer(document, data, { block: documentBlocks }));
  explorer.images = explorer.loadImages();
  const link = new Link(linkState(explorer));
  explorer.onChange = () => link.update();
  /** @type {any} */ (window).explorer = readout(explorer);
}

start().catch((error) => {
  const notice = /** @type {HTMLElement} */ (document.getElementById("notice"));
  notice.textContent = `The map could not be opened: ${error.message}. Please use a current browser.`;
  notice.hidden = false;
  throw error;
});
