/** One block of an event stream. Without data it only moves the position. */
export type SseBlock = { id: string | undefined; data: string | undefined };

/**
 * Reads server-sent events as the HTML standard has them: lines end in LF, CR or CRLF, wherever the chunks are cut. The
 * names of events are left out (ours are in the data, too). A block that is cut off by the end is dropped.
 */
export async function* parseSse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SseBlock, void, undefined> {
  let block = newBlock();
  for await (const line of linesOf(chunks)) {
    if (line === '') {
      const { id, data } = block;
      if (id !== undefined || data.length > 0) yield { id, data: data.length > 0 ? data.join('\n') : undefined };
      block = newBlock();
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') block.data.push(value);
    else if (field === 'id' && !value.includes('\0')) block.id = value;
  }
}

function newBlock(): { id: string | undefined; data: string[] } {
  return { id: undefined, data: [] };
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  let endedInCr = false;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') continue;
    if (endedInCr && text.startsWith('\n')) text = text.slice(1);
    endedInCr = text.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? '';
    yield* lines;
  }
}
