import { expect, it } from 'vitest';
import { POLLS_FORMAT, pollJobSchema, pollResultSchema } from '../../../src/engines/bullmq/poll-job.ts';

it('numbers the format of jobs and results: a change of their fields needs another number', () => {
  const fields = [pollJobSchema, pollResultSchema].map((schema) => Object.keys(schema.shape));
  expect({ format: POLLS_FORMAT, fields }).toEqual({
    format: 3,
    fields: [
      ['upstream', 'submission_ids', 'fencing_token', 'expires_at', 'timeout_ms', 'signature'],
      ['polled', 'not_polled', 'signature'],
    ],
  });
});
