/** Statistics for demos, tests and benchmarks. Requests are lookups of submissions. */
export type SandboxStats = {
  submitted: number;
  finalized: number;
  requests: number;
  throttled: number;
  unauthorized: number;
  redirectsFollowed: number;
  maxRequestsPerWindow: number;
  windowMs: number;
  requestsPerSubmissionMean: number;
};

export type Traffic = {
  requests: number;
  throttled: number;
  unauthorized: number;
  redirectsFollowed: number;
  /** Lookups by submission id, whatever their response. */
  readonly requestsBySubmission: Map<string, number>;
};

export function createTraffic(): Traffic {
  return { requests: 0, throttled: 0, unauthorized: 0, redirectsFollowed: 0, requestsBySubmission: new Map() };
}
