import { z } from 'zod';
import { EVENT_TYPES, type EventRecord } from '../monitor/event-body.ts';

export type EventFilter = (event: EventRecord) => boolean;

const WILDCARDS = ['submission.*', 'upstream.*'];
const known: ReadonlySet<string> = new Set([...EVENT_TYPES, ...WILDCARDS]);

/** `type` of a query: once or repeated, each a list with commas. */
export const typesSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat().flatMap((text) => text.split(',')))
  .superRefine((types, context) => {
    for (const type of types)
      if (!known.has(type))
        context.addIssue({
          code: 'custom',
          message: `${JSON.stringify(type.slice(0, 60))} is no event type; there are ${WILDCARDS.join(', ')} and the types under them`,
        });
  })
  .describe('Only events of these types: exact ones or submission.* or upstream.*; comma-separated or repeated');

/** Events of one of the types, if any are given, about the submission, if one is given. */
export function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
}): EventFilter {
  const { types, submissionId } = query;
  const wanted =
    types && new Set(types.flatMap((type) => EVENT_TYPES.filter((name) => name === type || isUnder(name, type))));
  return (event) => {
    if (wanted && !wanted.has(event.type)) return false;
    return submissionId === undefined || ('submission' in event && event.submission.submissionId === submissionId);
  };
}

function isUnder(name: string, wildcard: string): boolean {
  return wildcard.endsWith('.*') && name.startsWith(wildcard.slice(0, -1));
}
