import { z } from 'zod';
import type { OptionsPatch } from './option-changes.ts';
import { findWrongTime, optionFields } from './track-request.ts';

/** A request to change options of a submission. */
export const updateBodySchema = z
  .strictObject({
    ...optionFields,
    metadata: optionFields.metadata
      .nullable()
      .describe('Replaces the whole object; null removes it'),
    callback_url: optionFields.callback_url
      .nullable()
      .describe(
        'Receives the events from now on, and those that were not delivered to the earlier URL; null: no further events are sent',
      ),
  })
  .partial()
  .refine((body) => Object.keys(body).length > 0, 'must have at least one field')
  .describe('Absent fields are unchanged')
  .meta({
    id: 'SubmissionPatch',
    examples: [
      { metadata: { order: 4711 }, callback_url: null },
      { deadline: '2100-01-01T00:00:00Z' },
    ],
  });
export type UpdateBody = z.output<typeof updateBodySchema>;

/** `field`: the invalid one. */
type InvalidField = { kind: 'invalid'; field: string; reason: string };

/**
 * Converts a valid body to a patch. `refusalOf` returns why a callback URL is not allowed;
 * undefined: it is allowed.
 */
export function toOptionsPatch(
  body: UpdateBody,
  { now, refusalOf }: { now: number; refusalOf: (url: string) => string | undefined },
): { kind: 'patch'; patch: OptionsPatch } | InvalidField {
  const { deadline, unknown_grace_s, stuck_after_s, metadata, callback_url } = body;
  const wrongTime = findWrongTime({ deadline }, now);
  if (wrongTime) return { kind: 'invalid', ...wrongTime };
  const refusal =
    callback_url === undefined || callback_url === null ? undefined : refusalOf(callback_url);
  if (refusal !== undefined) return { kind: 'invalid', field: 'callback_url', reason: refusal };
  const patch: OptionsPatch = {
    ...(deadline !== undefined && { deadlineAt: Date.parse(deadline) }),
    ...(unknown_grace_s !== undefined && { unknownGraceMs: Math.round(unknown_grace_s * 1_000) }),
    ...(stuck_after_s !== undefined && { stuckAfterMs: Math.round(stuck_after_s * 1_000) }),
    ...(metadata !== undefined && { metadata }),
    ...(callback_url !== undefined && { callbackUrl: callback_url }),
  };
  return { kind: 'patch', patch };
}
