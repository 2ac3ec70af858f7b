// The data: a header and arrays in a block of bytes, compressed by zlib.

/**
 * @typedef {{name: string, kind: string, names?: string[], numeric?: boolean, daily?: boolean, captions?: string[], groups?: number[],
 *   layers?: {groups: number[], names: string[], captions?: string[]}[], missing?: string, values: any}} ColumnData
 * @typedef {{title: string, points: number, states: number, dimensions: number, boxes: any[], frames: number[][], columns: ColumnData[],
 *   color: number | null, palette: string[], images: number[] | null, path: any, maps: string[] | null, text: number | null,
 *   evidence: any, features: any, arrays: any[], positions: Uint16Array}} Data
 */

const ARRAYS = {
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array,
  float32: Float32Array, float64: Float64Array,
};

/** Bytes of a base64 text. */
function bytesOf(text) {
  const fast = /** @type {any} */ (Uint8Array);
  if (fast.fromBase64) return fast.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

/** The blocks of an HTML file, by the ids of their elements. */
export const documentBlocks = (id) => {
  const block = /** @type {HTMLElement} */ (document.getElementById(id));
  const bytes = bytesOf(block.textContent);
  block.remove(); // frees the memory of its text
  return bytes;
};

export function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/**
 * The header, with the positions of all maps and the values of each column added.
 * @returns {Promise<Data>}
 */
export async function readData(bytes) {
  const buffer = await inflated(bytes);
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = header.arrays.map((a) => new ARRAYS[a.dtype](buffer, 4 + length + a.offset, a.length));
  header.positions = arrays[0];
  header.columns.forEach((column, i) => { column.values = arrays[i + 1]; });
  return header;
}
