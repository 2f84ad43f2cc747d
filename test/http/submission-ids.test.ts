import { describe, expect, it } from 'vitest';
import {
  call,
  detailsOf,
  pathOf,
  post,
  problemOf,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const ASCII_CHARACTERS = String.fromCharCode(
  ...Array.from({ length: 94 }, (_, index) => 0x21 + index),
).replaceAll(/["'`{}[\],]/g, '');
const REASON =
  'a submission id has no quotes, braces, brackets and commas, and is none of ., .., null, undefined, true and false';

describe.each([
  ['of all characters that are allowed', ASCII_CHARACTERS],
  ['of 128 characters that all need encoding', '%'.repeat(128)],
  ['that climbs', '../../livez'],
  ['that looks like the path of another route', 'a/wait'],
  ['with a query', 'a?timeout_s=1&b=c'],
  ['that is encoded already', 'a%2Fb%00'],
  ['that every object inherits', '__proto__'],
])('an id %s', (_, id) => {
  it('is tracked, shown, awaited and cancelled unchanged', async () => {
    expect(
      trackedOf(await post(app.url, { submission_id: id })).submissions[0]?.submission_id,
    ).toBe(id);
    expect(detailsOf(await call(app.url, pathOf(id))).submission_id).toBe(id);
    expect(submissionOf(await call(app.url, `${pathOf(id)}/wait?timeout_s=0`)).status).toBe(
      'tracking',
    );
    const cancelled = submissionOf(await call(app.url, pathOf(id), { method: 'DELETE' }));
    expect(cancelled).toMatchObject({ submission_id: id, status: 'cancelled' });
  });
});

it('distinguishes ids that are no UUIDs by case and every character', async () => {
  const submission_ids = ['Case', 'case', 'CASE', 'case-', 'ca%73e', '0', '00', '0.0'];
  expect(trackedOf(await post(app.url, { submission_ids })).accepted).toBe(submission_ids.length);
  expect((await call(app.url, pathOf('cASE'))).status).toBe(404);
});

it('finds an id whose characters are all encoded, needed or not', async () => {
  await post(app.url, { submission_id: 'plain' });
  expect(detailsOf(await call(app.url, '/v1/submissions/%70%6C%61%69%6E')).submission_id).toBe(
    'plain',
  );
});

const BAD = [
  ['a line feed', 'a\n'],
  ['a NUL', 'a\0b'],
  ['a space', 'a b'],
  ['a non-ASCII letter', 'é'],
  ['129 characters', 'x'.repeat(129)],
  ['nothing', ''],
] as const;

describe.each(BAD)('an id of or with %s', (_, id) => {
  it('is refused by its position in the batch, and nothing of the batch is stored', async () => {
    const response = await post(app.url, {
      submission_ids: ['bystander-1', 'bystander-2', 'bystander-3', id],
    });
    expect(response.status).toBe(400);
    const { errors, detail } = problemOf(response);
    expect(errors).toMatchObject([{ pointer: '/submission_ids/3' }]);
    expect(detail).toBe(
      'body /submission_ids/3: a submission id is 1 to 128 printable ASCII characters without spaces',
    );
    expect((await call(app.url, pathOf('bystander-1'))).status).toBe(404);
  });
});

// Half a surrogate pair can't be written in a path at all.
it.each(BAD.filter(([, id]) => id.isWellFormed()))(
  'refuses an id of or with %s in a path',
  async (_, id) => {
    const response = await call(app.url, pathOf(id));
    expect(response.status).toBe(400);
    expect(problemOf(response).errors).toMatchObject([{ pointer: 'id' }]);
  },
);

it.each([
  '{"x":1}',
  '"a"',
  "'a'",
  '`a`',
  'a,b',
  '{a}',
  '[1]',
  'null',
  'undefined',
  'true',
  'false',
])('refuses to track %s, which comes from a mistake, and accepts it in a path', async (id) => {
  const items = { submissions: [{ submission_id: id }] };
  for (const body of [{ submission_id: id }, { submission_ids: [id] }, items])
    expect(problemOf(await post(app.url, body)).errors?.[0]?.detail).toBe(REASON);
  expect((await call(app.url, pathOf(id))).status).toBe(404);
});

describe.each(['.', '..'])('the id %s, which no URL can contain', (id) => {
  it('is refused for tracking, and nothing of its batch is stored', async () => {
    const response = await post(app.url, { submission_ids: ['beside-dots', id] });
    expect(response.status).toBe(400);
    expect(problemOf(response).errors).toEqual([{ pointer: '/submission_ids/1', detail: REASON }]);
    expect((await call(app.url, pathOf('beside-dots'))).status).toBe(404);
    expect(problemOf(await post(app.url, { submission_id: id })).errors?.[0]?.pointer).toBe(
      '/submission_id',
    );
  });

  it('is accepted in searches and lookups', async () => {
    await post(app.url, { submission_id: `${id}begins-so` });
    const found = await call(app.url, `/v1/submissions?prefix=${id}`);
    expect(found.status).toBe(200);
    expect(found.text).toContain(`"${id}begins-so"`);
    expect((await call(app.url, `/v1/deliveries?submission_id=${id}`)).status).not.toBe(400);
    const info = await call(app.url, `/v1/get_submission_info?submission_id=${id}`);
    expect(problemOf(info).detail).not.toContain(REASON);
  });
});

it('names the first twenty of many invalid ids, and counts the others', async () => {
  const { errors, detail } = problemOf(await post(app.url, { submission_ids: Array(30).fill('') }));
  expect(errors).toHaveLength(20);
  expect(detail).toContain('(and 29 more)');
});
