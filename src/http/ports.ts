import type { LookupAnswer } from '../monitor/lookup.ts';
import type { UpstreamHealth } from '../monitor/monitor.ts';
import type { TrackResult } from '../monitor/ports.ts';
import type { HistoryEntry, Status, Submission } from '../monitor/submission.ts';
import type { TrackBody } from '../monitor/track-request.ts';

/** What the routes do with submissions. */
export type Submissions = {
  track(body: TrackBody): TrackResult | { kind: 'invalid'; field: string; reason: string };
  get(submissionId: string): Submission | undefined;
  history(submissionId: string): HistoryEntry[];
  list(query: { status?: Status | undefined; limit: number; before?: number | undefined }): {
    submissions: Submission[];
    nextBefore: number | null;
  };
  cancel(submissionId: string): Submission | undefined;
  waitUntilFinal(submissionId: string, timeoutMs: number, signal: AbortSignal): Promise<void>;
  deadlineAt(submission: Submission): number;
};

/** Answers for the upstream about single submissions. */
export type SubmissionInfo = {
  hasUpstream(name: string): boolean;
  lookUp(submissionId: string, upstream: string): Promise<LookupAnswer>;
};

/** service: submissions. user: looking up one user. admin: everything. */
export const ROLES = ['service', 'user', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export type Caller = {
  role: Role;
  /** For the audit: never the secret. */
  name: string;
};

/** Whose secret this is, by its SHA-256; undefined: nobody's, or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;

export type Health = { ledgerWritable: boolean; upstreams: UpstreamHealth[] };

/** What an error of the house means to a client; undefined: nothing it should know. */
export type ErrorMeaning = (error: unknown) => { status: 503 | 507; detail: string; retryAfterS: number } | undefined;
