import { z } from 'zod';
import { isObject, parseJson } from '../lib/json.ts';

/**
 * The used fields of the upstream's envelope, section 2 of its interface. A field of another type
 * counts as absent, and unknown fields are allowed: the unchanged text is stored beside this view.
 */
const field = {
  text: z.string().nullish().catch(undefined),
  number: z.number().nullish().catch(undefined),
};

const dataSchema = z.object({
  amount_data: field.text,
  block_hash: field.text,
  block_number: field.number,
  created_at: field.text,
  data_billed: field.text,
  data_hash: field.text,
  fees: field.text,
  tx_hash: field.text,
  tx_index: field.number,
  user_id: field.text,
});

const envelopeSchema = z.object({
  id: z.string().optional().catch(undefined),
  state: z
    .string()
    .min(1)
    .max(200)
    .transform((state) => state.toWellFormed()),
  error: z.unknown().optional(),
  data: dataSchema.nullish().catch(undefined),
});
export type Envelope = z.output<typeof envelopeSchema>;

export function readEnvelope(body: unknown): Envelope | undefined {
  const parsed = envelopeSchema.safeParse(body);
  return parsed.success ? parsed.data : undefined;
}

/** Returns the unchanged `data` of an envelope; null if it has none. */
export function dataOf(envelope: string | null): Record<string, unknown> | null {
  const body = envelope === null ? null : parseJson(envelope);
  return isObject(body) && isObject(body.data) ? body.data : null;
}

/** Whether two envelopes have equal `data`. Fields outside the interface are ignored. */
export function sameData(a: string | null, b: string | null): boolean {
  if (a === b) return true;
  return fingerprint(a) === fingerprint(b);
}

function fingerprint(envelope: string | null): string {
  const data = dataOf(envelope);
  if (data === null) return '';
  const fields = Object.keys(dataSchema.shape).map((name) => {
    const value = data[name] ?? null;
    if (name === 'created_at' && typeof value === 'string') return upstreamTime(value) ?? value;
    return typeof value === 'number' ? String(value) : value;
  });
  return JSON.stringify(fields);
}

/**
 * Parses an upstream time to epoch milliseconds; null if it is invalid. Without a zone it is UTC.
 */
export function upstreamTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
  return Number.isNaN(ms) ? null : ms;
}
