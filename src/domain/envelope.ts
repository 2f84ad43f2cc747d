import { z } from 'zod';
import { isObject, parseJson } from './json.ts';

/**
 * What we use of the upstream's answer, section 2 of its interface. A field of another type reads as absent and a field
 * nobody knows is no error: the text as it came is kept beside this view.
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

/** `data` of a kept envelope, as it came; null where a ledger of an older version holds one that is nested too deeply. */
export function dataOf(answer: string | null): Record<string, unknown> | null {
  const envelope = answer === null ? undefined : parseJson(answer);
  return isObject(envelope) && isObject(envelope.data) ? envelope.data : null;
}

/** Whether two envelopes say the same of the submission; fields outside the interface don't count. */
export function sameData(a: string | null, b: string | null): boolean {
  if (a === b) return true;
  return fingerprint(a) === fingerprint(b);
}

function fingerprint(answer: string | null): string {
  const data = dataOf(answer);
  if (data === null) return '';
  const fields = Object.keys(dataSchema.shape).map((name) => {
    const value = data[name] ?? null;
    if (name === 'created_at' && typeof value === 'string') return upstreamTime(value) ?? value;
    return typeof value === 'number' ? String(value) : value;
  });
  return JSON.stringify(fields);
}

/** Epoch milliseconds of an upstream time, which is UTC even where it comes without a zone; null if it is no time. */
export function upstreamTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
  return Number.isNaN(ms) ? null : ms;
}
