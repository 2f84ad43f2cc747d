/**
 * Reads server-sent events: yields each block's id and data. A block without data only moves the position.
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<{ id: string | undefined, data: string | undefined }, void, undefined>}
 */
export async function* parseSse(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) yield fieldsOf(block);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** @param {string} block */
function fieldsOf(block) {
  /** @type {Record<string, string>} */
  const fields = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).replace(/^ /, '');
  }
  return { id: fields.id, data: fields.data };
}
