import { expect, it } from 'vitest';
import {
  call,
  detailsOf,
  pathOf,
  post,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const track = async (body: object) => trackedOf(await post(app.url, body));

it('cancels a submission once and for good', async () => {
  await track({ submission_id: 'stopped' });
  const cancelled = submissionOf(await call(app.url, pathOf('stopped'), { method: 'DELETE' }));
  expect(cancelled).toMatchObject({
    submission_id: 'stopped',
    status: 'cancelled',
    finalized_at: null,
  });
  // A poll in flight may still be counted.
  const { polls: _polls, last_polled_at: _at, ...lasting } = cancelled;
  expect(submissionOf(await call(app.url, pathOf('stopped'), { method: 'DELETE' }))).toMatchObject(
    lasting,
  );
  expect(await track({ submission_id: 'stopped' })).toMatchObject({
    accepted: 0,
    submissions: [lasting],
  });
  const { history } = detailsOf(await call(app.url, pathOf('stopped')));
  expect(history.map(({ status }) => status)).toEqual(['tracking', 'cancelled']);
});
