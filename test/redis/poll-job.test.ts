import { expect, it } from 'vitest';
import { POLLS_FORMAT, pollJobSchema, pollResultSchema } from '../../src/redis/messages.ts';

it('the version of the job format must be increased when a field of jobs or results changes', () => {
  const fields = [pollJobSchema, pollResultSchema].map((schema) => Object.keys(schema.shape));
  expect({ format: POLLS_FORMAT, fields }).toEqual({
    format: 4,
    fields: [
      ['upstream', 'submission_ids', 'fencing_token', 'expires_at', 'timeout_ms', 'signature'],
      ['polled', 'not_polled', 'worker', 'signature'],
    ],
  });
});
