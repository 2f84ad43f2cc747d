import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import type { ResponseHeaders } from './upstream-call.ts';

/** The bytes of a response, and the headers that describe them. */
export type Content = { body: Buffer; headers: Record<string, string> };

const DESCRIBING = ['content-type', 'content-encoding', 'content-language', 'retry-after'] as const;
const DECODERS: Record<string, (bytes: Buffer, options: { maxOutputLength: number }) => Buffer> = {
  gzip: gunzipSync,
  'x-gzip': gunzipSync,
  deflate: inflateSync,
  br: brotliDecompressSync,
};
const MAX_DECODED_BYTES = 4 * 1024 * 1024;

/**
 * Returns the content of a response as received, and its text. If the text contains a credential,
 * which `redact` masks, the content is the masked text instead.
 */
export function contentOf(
  bytes: Buffer,
  received: ResponseHeaders,
  redact: (text: string) => string,
): Content & { text: string } {
  const headers: Record<string, string> = {};
  for (const name of DESCRIBING) {
    const [value] = [received[name]].flat();
    if (value !== undefined) headers[name] = value;
  }
  const plain = decoded(bytes, headers['content-encoding']);
  // Latin-1 has a character for every byte.
  const characters = plain.toString('latin1');
  const masked = redact(characters);
  if (masked === characters) return { body: bytes, headers, text: plain.toString('utf8') };
  const { 'content-encoding': _encoding, ...others } = headers;
  const body = Buffer.from(masked, 'latin1');
  return { body, headers: others, text: body.toString('utf8') };
}

/** Returns the bytes themselves if they are not encoded, or not as the header states. */
function decoded(bytes: Buffer, encoding = ''): Buffer {
  try {
    return (
      DECODERS[encoding.trim().toLowerCase()]?.(bytes, { maxOutputLength: MAX_DECODED_BYTES }) ??
      bytes
    );
  } catch {
    return bytes;
  }
}
