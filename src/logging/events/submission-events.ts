import type { LogEvent, LogField } from './fields.ts';

const SUBMISSION = [
  'submission_id',
  'upstream',
  'status',
  'previous_status',
  'upstream_state',
  'error',
  'block_number',
  'block_hash',
  'tracked_ms',
  'time_to_finality_ms',
  'polls',
] as const satisfies LogField[];

const SHOW_HISTORY = '`dawatch status <id>` shows the history';

/** Changes of submissions, polls and the state of upstreams. */
export const SUBMISSION_EVENTS = {
  'submissions.tracked': {
    levels: ['debug'],
    when: 'a tracking request was accepted. `submission_id` is present if the request had a single id',
    fields: ['request_id', 'accepted', 'already_tracked', 'submission_id'],
  },
  'submission.cancelled': {
    levels: ['info'],
    when: 'a client cancelled the submission',
    fields: ['request_id', 'submission_id', 'status'],
  },
  'submission.finalized': {
    levels: ['info'],
    when: 'the submission is final',
    fields: SUBMISSION,
  },
  'submission.corrected': {
    levels: ['info'],
    when: 'the data of the submission changed after finality',
    fields: SUBMISSION,
    advice: 'consumers that used the earlier data must read it again',
  },
  'submission.failing': {
    levels: ['info'],
    when: 'the upstream reports Error, which may be temporary',
    fields: SUBMISSION,
  },
  'submission.recovered': {
    levels: ['info'],
    when: 'the upstream no longer reports Error',
    fields: SUBMISSION,
  },
  'submission.stuck': {
    levels: ['warn'],
    when: 'the submission has been open for longer than `stuck_after_s`',
    fields: SUBMISSION,
    advice: SHOW_HISTORY,
  },
  'submission.failed': {
    levels: ['warn'],
    when: 'the upstream still reports Error at the deadline',
    fields: SUBMISSION,
    advice: 'submit the data again',
  },
  'submission.unknown': {
    levels: ['warn'],
    when: 'the upstream has not found the submission for `unknown_grace_s`',
    fields: SUBMISSION,
    advice: 'compare the id with the one returned by the upstream',
  },
  'submission.rejected': {
    levels: ['warn'],
    when: 'the upstream refuses the id',
    fields: SUBMISSION,
    advice: 'compare the id with the one returned by the upstream',
  },
  'submission.expired': {
    levels: ['warn'],
    when: 'the deadline has passed',
    fields: SUBMISSION,
    advice: `${SHOW_HISTORY}; track the submission again with a later deadline`,
  },
  'poll.observed': {
    levels: ['debug'],
    when: 'a poll of a submission returned an observation',
    fields: ['submission_id', 'kind', 'duration_ms', 'error'],
  },
  'upstream.up': {
    levels: ['info'],
    when: 'an upstream works again',
    fields: ['upstream', 'outage_ms'],
  },
  'upstream.down': {
    levels: ['error'],
    when: 'consecutive requests failed. Only probes are sent, and deadlines are extended',
    fields: ['upstream', 'outage_ms'],
    advice: 'verify that the upstream runs and that its address is right. dawatch retries indefinitely',
  },
  'upstream.unauthorized': {
    levels: ['error'],
    when: 'an upstream refuses the API key',
    fields: ['upstream', 'outage_ms'],
    advice: 'set DAWATCH_UPSTREAM_API_KEY to a valid key and restart',
  },
  'upstream.not_configured': {
    levels: ['warn'],
    when: 'the server starts and open submissions belong to an upstream that is not in the settings',
    fields: ['upstream', 'submissions'],
    advice: 'add the upstream under `upstreams`, or cancel the submissions',
  },
  'listener.failed': {
    levels: ['error'],
    when: 'an internal listener of the watcher, such as the statistics, failed. Recording and polling continue',
    fields: ['err'],
    advice: 'report the defect with `err`',
  },
} as const satisfies Record<string, LogEvent>;
