// Elements of the document. Text from the data enters it only as textContent.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Create an element with a class and text.
 * @returns {any}
 */
export function element(tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (text !== "") made.textContent = text;
  return made;
}

/** Create a button that runs `action` when it is clicked. */
export function button(name, text, action) {
  const made = element("button", name, text);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

/**
 * Create an element of SVG.
 * @returns {any}
 */
export function shape(tag, attributes, text = "") {
  const made = document.createElementNS(SVG, tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== "") made.textContent = text;
  return made;
}

export function saveFile(blob, name) {
  const link = element("a");
  Object.assign(link, { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
