// The data blocks of the document: zlib-compressed and base64-encoded.

const ARRAYS = {
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array,
  float32: Float32Array, float64: Float64Array,
};

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function unpack(id) {
  const block = document.getElementById(id);
  const bytes = bytesOf(block.textContent);
  block.remove(); // frees the memory of its text
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/** The header, with the positions of all maps and the values of each column added. */
async function readData() {
  const buffer = await unpack("data");
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const arrays = header.arrays.map((a) => new ARRAYS[a.dtype](buffer, 4 + length + a.offset, a.length));
  header.positions = arrays[0];
  header.columns.forEach((column, i) => { column.values = arrays[i + 1]; });
  return header;
}
