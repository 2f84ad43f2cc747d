import { z } from 'zod';
import { explainIssue } from '../../domain/explain-issue.ts';
import type { EventRecord } from '../../domain/notifications/event-body.ts';
import { createMatcher, eventTypeSchema, metadataFilterSchema } from '../../domain/notifications/subscription.ts';
import { canonicalId } from '../../domain/submission.ts';

export type EventFilter = (event: EventRecord) => boolean;

/** `type` of a query: once or repeated, each a list with commas. */
export const typesSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat().flatMap((text) => text.split(',')))
  .superRefine((types, context) => {
    for (const type of types) addIssues(context, eventTypeSchema.safeParse(type, { error: explainIssue }));
  })
  .describe('Only events of these types: exact ones, or wildcards like submission.*; comma-separated or repeated');

/** `metadata` of a query: the filter as JSON, the same object that a webhook takes. */
export const metadataQuerySchema = z
  .string()
  .transform((text, context) => {
    const filter = metadataFilterSchema.safeParse(parseFilter(text), { error: explainIssue });
    addIssues(context, filter);
    return filter.data ?? z.NEVER;
  })
  .describe('Only events about submissions with such metadata, as JSON: {"team":"billing"}');

/** Nothing was asked for in particular. It is known by itself, because most readers have it. */
export const matchAll: EventFilter = () => true;

/** Events of one of the types, if any are given, about the submission and with the metadata, if those are given. */
export function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((asked) => asked === undefined)) return matchAll;
  const { types = ['*'], submissionId, metadata = null } = query;
  const matches = createMatcher({ types, metadata });
  const ids = submissionId === undefined ? undefined : [submissionId, canonicalId(submissionId)];
  return (event) => {
    const submission = 'submission' in event ? event.submission : undefined;
    if (ids && !(submission && ids.includes(submission.submissionId))) return false;
    return matches({ type: event.type, metadata: submission?.metadata ?? null });
  };
}

/** What is wrong, said of the parameter as a whole: nobody finds a place within it. */
function addIssues(context: z.core.$RefinementCtx, { error }: z.ZodSafeParseResult<unknown>): void {
  for (const { path, message } of error?.issues ?? [])
    context.addIssue({ code: 'custom', message: [...path, message].join(': ') });
}

/** Undefined: it is no JSON, or has a name that would be passed over. Numbers are read as those of bodies are. */
function parseFilter(text: string): unknown {
  try {
    const filter: unknown = JSON.parse(text);
    return filter !== null && typeof filter === 'object' && Object.hasOwn(filter, '__proto__') ? undefined : filter;
  } catch {
    return undefined;
  }
}
