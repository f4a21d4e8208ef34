// The payload: one gzipped block, a JSON header and after it plain arrays.

const ARRAY_TYPES = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  float32: Float32Array,
};

async function readPayload(element) {
  const packed = fromBase64(element.textContent.trim());
  element.remove(); // the text is as large as the data: let it go
  const block = await gunzip(packed);
  const start = 4 + new DataView(block).getUint32(0, true);
  const header = parseJson(new Uint8Array(block, 4, start - 4));
  const arrays = {};
  for (const [name, { type, offset, length }] of Object.entries(header.arrays)) {
    const from = align(start) + offset;
    arrays[name] =
      type === "json"
        ? parseJson(new Uint8Array(block, from, length))
        : new ARRAY_TYPES[type](block, from, length);
  }
  return { ...header, arrays };
}

function align(position) {
  return Math.ceil(position / 8) * 8;
}

function parseJson(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

function gunzip(bytes) {
  if (!window.DecompressionStream) {
    throw new Error("this browser is too old: it cannot unpack the samples");
  }
  const stream = new Blob([bytes]).stream();
  const plain = stream.pipeThrough(new DecompressionStream("gzip"));
  return new Response(plain).arrayBuffer();
}
