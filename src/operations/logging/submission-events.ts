import { debug, error, info, type LogEvent, type LogField, warn } from './fields.ts';

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
  'submissions.tracked': debug(
    'a tracking request was accepted. `submission_id` is present if the request had a single id',
    ['request_id', 'accepted', 'already_tracked', 'already_final', 'retracked', 'submission_id'],
  ),
  'submit.accepted': debug(
    'the upstream has accepted submitted data, and the submission is tracked',
    ['request_id', 'submission_id', 'upstream'],
  ),
  'submit.unclear': warn(
    'data was sent to the upstream, and its response does not show whether it was accepted. It was not sent again',
    ['request_id', 'upstream', 'reason'],
    'look for the data at the upstream before you submit it again',
  ),
  'submit.not_tracked': error(
    'the upstream has accepted submitted data, but the submission could not be tracked. The client was notified',
    ['request_id', 'submission_id', 'upstream', 'reason', 'err'],
    'track the id: `dawatch track <submission_id>`',
  ),
  'submission.cancelled': info('a client cancelled the submission', [
    'request_id',
    'submission_id',
    'status',
  ]),
  'submission.updated': info('a client changed options of the submission', [
    'request_id',
    'submission_id',
    'options',
  ]),
  'submission.finalized': info('the submission is final', SUBMISSION),
  'submission.corrected': info(
    'the data of the submission changed after finality',
    SUBMISSION,
    'consumers that used the earlier data must read it again',
  ),
  'submission.failing': info('the upstream reports Error, which may be temporary', SUBMISSION),
  'submission.recovered': info('the upstream no longer reports Error', SUBMISSION),
  'submission.stuck': warn(
    'the submission has been open for longer than `stuck_after_s`',
    SUBMISSION,
    SHOW_HISTORY,
  ),
  'submission.failed': warn(
    'the upstream still reports Error at the deadline',
    SUBMISSION,
    'submit the data again',
  ),
  'submission.unknown': warn(
    'the upstream has not found the submission for `unknown_grace_s`',
    SUBMISSION,
    'compare the id with the one returned by the upstream',
  ),
  'submission.rejected': warn(
    'the upstream refuses the id',
    SUBMISSION,
    'compare the id with the one returned by the upstream',
  ),
  'submission.expired': warn(
    'the deadline has passed',
    SUBMISSION,
    `${SHOW_HISTORY}; \`dawatch track --retrack\` tracks the submission again with a later deadline`,
  ),
  'poll.observed': debug('a poll of a submission returned an observation', [
    'submission_id',
    'kind',
    'duration_ms',
    'error',
  ]),
  'upstream.up': info('an upstream works again', ['upstream', 'outage_ms']),
  'upstream.down': error(
    'consecutive requests failed. Only probes are sent, and deadlines are extended',
    ['upstream', 'outage_ms'],
    'verify that the upstream runs and that its address is right. dawatch retries indefinitely',
  ),
  'upstream.unauthorized': error(
    'an upstream refuses the API key',
    ['upstream', 'outage_ms'],
    'set a valid `api_key` of the upstream, then reload the settings, or restart if the key is in a variable',
  ),
  'upstream.not_configured': warn(
    'the server starts and open submissions belong to an upstream that is not in the settings',
    ['upstream', 'submissions'],
    'add the upstream under `upstreams`, or cancel the submissions',
  ),
  'listener.failed': error(
    'an internal listener of the watcher, such as the statistics, failed. Recording and polling continue',
    ['err'],
    'report the defect with `err`',
  ),
} as const satisfies Record<string, LogEvent>;
