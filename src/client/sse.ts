import { ConnectionError } from './errors.ts';

/** A block of an event stream. A block without data only updates the position. */
export type SseBlock = { id: string | undefined; data: string | undefined };

/**
 * Parses server-sent events according to the HTML standard: lines end with LF, CR or CRLF. Event
 * names are ignored, because the data contains the type. An incomplete last block is dropped.
 */
export async function* parseSse(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<SseBlock, void, undefined> {
  let block = newBlock();
  for await (const line of linesOf(chunks)) {
    if (line === '') {
      const { id, data } = block;
      if (id !== undefined || data.length > 0)
        yield { id, data: data.length > 0 ? data.join('\n') : undefined };
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

/** Yields the body of a response as it arrives. Throws ConnectionError if it ends early. */
export async function* bytesOf(
  response: Response,
  onChunk: () => void = () => undefined,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Some browsers cannot iterate over a stream.
  const reader = response.body?.getReader();
  try {
    for (let read = await reader?.read(); read?.value; read = await reader?.read()) {
      onChunk();
      yield read.value;
    }
  } catch (error) {
    throw new ConnectionError('the connection was lost', { cause: error });
  } finally {
    // Stops reading when the caller abandons the iteration.
    await reader?.cancel().catch(() => undefined);
  }
}

/** Yields lines that end with LF, CR or CRLF. An incomplete last line is dropped. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
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
