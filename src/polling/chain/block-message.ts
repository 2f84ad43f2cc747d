import { isObject } from '../../lib/json.ts';

const NAME = '"extrinsics"';
/** Characters from the name to the bracket: a colon and spaces. */
const MAX_BETWEEN = 8;

/**
 * Parses a message with a block, except the list of its extrinsics, which becomes a Buffer with the
 * JSON between its brackets: a list of 16 MiB could otherwise take gigabytes. Throws if it is not
 * JSON. Returns undefined if the rest has more than `maxBytes`.
 */
export function parseBlockMessage(bytes: Buffer, maxBytes: number): unknown {
  const [start, end] = listIn(bytes);
  if (bytes.length - (end - start) > maxBytes) return undefined;
  const rest = Buffer.concat([bytes.subarray(0, start), bytes.subarray(end)]);
  const message: unknown = JSON.parse(rest.toString());
  const { result } = isObject(message) ? message : {};
  const block = isObject(result) ? result.block : undefined;
  if (isObject(block) && Array.isArray(block.extrinsics))
    block.extrinsics = bytes.subarray(start, end);
  return message;
}

/** Returns where the list begins and ends. Texts in hexadecimal contain no bracket. */
function listIn(bytes: Buffer): [number, number] {
  const at = bytes.indexOf(NAME);
  const after = bytes.toString('latin1', at + NAME.length, at + NAME.length + MAX_BETWEEN);
  const [opening] = (at < 0 ? null : /^\s*:\s*\[/.exec(after)) ?? [];
  if (opening === undefined) return [0, 0];
  const start = at + NAME.length + opening.length;
  return [start, Math.max(start, bytes.indexOf(']', start))];
}
