import { z } from 'zod';
import { SEVERAL } from '../http/query.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { canonicalId } from '../submissions/submission.ts';
import type { EventRecord } from './event-body.ts';
import { createMatcher, eventTypeSchema, metadataFilterSchema } from './subscription.ts';

export type EventFilter = (event: EventRecord) => boolean;

/** The `type` parameter: comma-separated, repeatable. */
export const typesSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat().flatMap((text) => text.split(',')))
  .superRefine((types, context) => {
    for (const type of types)
      addIssues(context, eventTypeSchema.safeParse(type, { error: explainIssue }));
  })
  .describe(
    'Only events of these types: exact ones, or wildcards like submission.*; comma-separated or repeated',
  )
  .meta(SEVERAL);

/** The `metadata` parameter: the metadata filter of a webhook as JSON. */
export const metadataQuerySchema = z
  .string()
  .transform((text, context) => {
    const filter = metadataFilterSchema.safeParse(parseFilter(text), { error: explainIssue });
    addIssues(context, filter);
    return filter.data ?? z.NEVER;
  })
  .describe('Only events about submissions with this metadata, as JSON: {"team":"billing"}');

/**
 * The filter without conditions, which most readers use. FeedPage recognizes it and shares the
 * bytes between them.
 */
export const matchAll: EventFilter = () => true;

/**
 * Returns a filter for the given types, submission and metadata; undefined conditions match every
 * event.
 */
export function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((condition) => condition === undefined)) return matchAll;
  const { types = ['*'], submissionId, metadata = null } = query;
  const matches = createMatcher({ types, metadata });
  const ids = submissionId === undefined ? undefined : [submissionId, canonicalId(submissionId)];
  return (event) => {
    const submission = 'submission' in event ? event.submission : undefined;
    if (ids && !(submission && ids.includes(submission.submissionId))) return false;
    return matches({ type: event.type, metadata: submission?.metadata ?? null });
  };
}

/** Reports the issues for the parameter as a whole, with the path in the message. */
function addIssues(context: z.core.$RefinementCtx, { error }: z.ZodSafeParseResult<unknown>): void {
  for (const { path, message } of error?.issues ?? [])
    context.addIssue({ code: 'custom', message: [...path, message].join(': ') });
}

/** Parses the filter; undefined if it is not JSON or has the key __proto__. */
function parseFilter(text: string): unknown {
  try {
    const filter: unknown = JSON.parse(text);
    return filter !== null && typeof filter === 'object' && Object.hasOwn(filter, '__proto__')
      ? undefined
      : filter;
  } catch {
    return undefined;
  }
}
