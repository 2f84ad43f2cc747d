import type {
  ChainVerdict,
  DeliveryState,
  ListAuditQuery,
  ListDeliveriesQuery,
  ListSubmissionsQuery,
  SubmissionStatus,
  FoundSubmissions as SubmissionsOfLookup,
} from './api.ts';

/** Metadata entries that a submission must have with exactly these values. */
export type MetadataFilter = Readonly<Record<string, string | number | boolean | null>>;

type Verdict = NonNullable<ChainVerdict>;

/** Conditions that all apply. */
export type SubmissionFilter = Omit<
  ListSubmissionsQuery,
  'status' | 'chain' | 'metadata' | 'cursor' | 'limit'
> & {
  status?: SubmissionStatus | readonly SubmissionStatus[] | undefined;
  chain?: Verdict | readonly Verdict[] | undefined;
  /** Up to 10 values at the top level of the metadata, compared as text. */
  metadata?: MetadataFilter | undefined;
};

/** `limit`: default 100. */
export type SubmissionQuery = SubmissionFilter & {
  limit?: number | undefined;
  cursor?: string | undefined;
};

type DeliveryStateFilter = DeliveryState | 'failing';

/** Conditions that all apply. */
export type DeliveryQuery = Omit<ListDeliveriesQuery, 'state' | 'event_type'> & {
  /** `failing`: waiting for a retry after a failed attempt. */
  state?: DeliveryStateFilter | readonly DeliveryStateFilter[] | undefined;
  /** Types of events, or wildcards such as `submission.*`. */
  event_type?: string | readonly string[] | undefined;
};

/** Conditions that all apply. */
export type AuditQuery = Omit<ListAuditQuery, 'action' | 'format'> & {
  /** One action or several. */
  action?: string | readonly string[] | undefined;
};

/** The submissions of these ids. */
export type FoundSubmissions = Omit<SubmissionsOfLookup, 'remaining'>;

/** Sends a request and returns its body, or undefined for a response without a body. */
export type SendRequest = <T>(
  method: string,
  path: string,
  body?: unknown,
  signal?: AbortSignal,
) => Promise<T>;

/**
 * Returns a query string such as "?a=1&b=2" without undefined values, or "" if there are none. A
 * list becomes "a,b".
 */
export function queryOf(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}

export function pathOf(submissionId: string): string {
  return `/v1/submissions/${encodeURIComponent(submissionId)}`;
}

/** Returns the query string of conditions for submissions. */
export function filterQuery({ metadata, ...query }: SubmissionQuery): string {
  return queryOf({ ...query, metadata: metadata && JSON.stringify(metadata) });
}
