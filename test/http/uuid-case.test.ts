import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import {
  call,
  detailsOf,
  pathOf,
  post,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { useNotifyingApp } from '../support/app/notifying-app.ts';
import { useAppWithSandbox } from '../support/app/running-app.ts';
import { openReceiver } from '../support/servers/receiver.ts';

const app = useAppWithSandbox();
const notifying = useNotifyingApp();

/** A UUID that begins with a letter, so that the spellings of its prefix differ, too. */
const newId = () => `a${randomUUID().slice(1)}`;
const spellings = (id: string) => [
  id,
  id.toUpperCase(),
  id.replace(/[a-f]/, (digit) => digit.toUpperCase()),
];
const listed = async (query: string) => {
  const { text } = await call(app.url, `/v1/submissions?${query}`);
  return JSON.parse(text) as {
    submissions: { submission_id: string }[];
    next_cursor: string | null;
  };
};

describe('a UUID in any case is one submission', () => {
  it('tracked in upper case, it is shown in lower case, and found in each', async () => {
    const id = newId();
    const given = id.toUpperCase();
    const first = trackedOf(await post(app.url, { submission_id: given, upstream: 'other' }));
    expect(first).toMatchObject({ accepted: 1, submissions: [{ submission_id: id }] });
    for (const spelling of spellings(id)) {
      const again = trackedOf(await post(app.url, { submission_id: spelling, upstream: 'other' }));
      expect(again).toMatchObject({
        accepted: 0,
        already_tracked: 1,
        submissions: [{ submission_id: id }],
      });
      expect(detailsOf(await call(app.url, pathOf(spelling))).submission_id).toBe(id);
      expect(
        submissionOf(await call(app.url, `${pathOf(spelling)}/wait?timeout_s=0`)).submission_id,
      ).toBe(id);
    }
    const cancelled = await call(app.url, pathOf(given), { method: 'DELETE' });
    expect(submissionOf(cancelled)).toMatchObject({ submission_id: id, status: 'cancelled' });
  });

  it('is found by each spelling of its prefix, page by page', async () => {
    const begin = `b${randomUUID().slice(1, 7)}`;
    const uuid = (last: string) => `${begin}0-0000-4000-8000-00000000000${last}`;
    const upper = begin.toUpperCase();
    const others = [`${begin}-is-no-uuid`, `${upper}-is-none-either`];
    const ids = [...'123abc'].map(uuid);
    await post(app.url, { submission_ids: [...ids, ...others], upstream: 'other' });
    const all: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await listed(`prefix=${upper}&limit=2${cursor && `&cursor=${cursor}`}`);
      all.push(...page.submissions.map(({ submission_id }) => submission_id));
      cursor = page.next_cursor;
    }
    expect(all).toEqual([others[1], ...ids]);
    const lower = await listed(`prefix=${begin}`);
    expect(lower.submissions.map(({ submission_id }) => submission_id)).toEqual(
      [others[0], ...ids].toSorted(),
    );
    const allMatches = await listed(`prefix=${uuid('a').toUpperCase()}`);
    expect(allMatches.submissions.map(({ submission_id }) => submission_id)).toEqual([uuid('a')]);
  });

  it('is followed on the live feed in each spelling', async () => {
    const id = newId();
    const readers = await Promise.all(
      spellings(id).map((spelling) => readEvents(app.url, `?submission_id=${spelling}`)),
    );
    await post(app.url, { submission_ids: [id, newId()], upstream: 'other' });
    await call(app.url, pathOf(id.toUpperCase()), { method: 'DELETE' });
    for (const reader of readers) {
      await reader.has(1);
      expect(reader.received).toMatchObject([
        { body: { data: { submission: { submission_id: id } } } },
      ]);
    }
  });

  it('has its deliveries in each spelling', async () => {
    const receiver = await openReceiver();
    const id = newId();
    const webhook = await notifying.create({ url: receiver.url });
    await notifying.cancelled([id.toUpperCase()]);
    for (const spelling of spellings(id)) {
      const deliveries = await notifying.deliveries(
        `destination=webhook:${webhook.id}&submission_id=${spelling}`,
      );
      expect(deliveries.map(({ submission_id }) => submission_id)).toEqual([id]);
    }
  });

  it('is polled in lower case, and is final in each spelling', async () => {
    const id = app.submit();
    await post(app.url, { submission_id: id.toUpperCase() });
    const waited = submissionOf(await call(app.url, `${pathOf(id)}/wait?timeout_s=240`));
    expect(waited).toMatchObject({ submission_id: id, status: 'finalized' });
    for (const spelling of spellings(id)) {
      const info = await call(app.url, `/v1/get_submission_info?submission_id=${spelling}`);
      expect(JSON.parse(info.text)).toMatchObject({ id, state: 'Finalized' });
    }
  });
});
