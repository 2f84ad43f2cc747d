import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { RequestBatcher } from '../../../src/http/load/request-batcher.ts';
import { systemClock } from '../../../src/platform/system-clock.ts';
import { LedgerUnavailableError } from '../../../src/watch/ports.ts';
import { call, pathOf, post } from '../../support/http-calls.ts';
import { reading } from '../../support/metrics.ts';
import { API_KEY, useApp } from '../../support/running-app.ts';

describe('items of one iteration of the event loop', () => {
  function openGroup(...isOfAll: [((error: unknown) => boolean)?]) {
    const commits: string[] = [];
    const group = new RequestBatcher(
      (names: readonly string[]) => {
        commits.push(names.join('+'));
        if (names.includes('full')) throw new LedgerUnavailableError('no room');
        if (names.includes('bad')) throw new Error('this one can not be kept');
        return names.map((name) => name.toUpperCase());
      },
      ...isOfAll,
    );
    const take = (...names: string[]) =>
      Promise.all(names.map((name) => group.add(name).catch((error: Error) => error.message)));
    return { commits, take };
  }

  it('share a commit and get their own results', async () => {
    const { commits, take } = openGroup();
    expect(await take('a', 'b', 'c')).toEqual(['A', 'B', 'C']);
    expect(await take('d')).toEqual(['D']);
    expect(commits).toEqual(['a+b+c', 'd']);
  });

  it('are committed one by one if the batch fails', async () => {
    const { commits, take } = openGroup();
    expect(await take('a', 'bad', 'c')).toEqual(['A', 'this one can not be kept', 'C']);
    expect(commits).toEqual(['a+bad+c', 'a', 'bad', 'c']);
  });

  it('fail together if the ledger cannot be written', async () => {
    const { commits, take } = openGroup();
    expect(await take('a', 'full')).toEqual(['no room', 'no room']);
    expect(commits).toEqual(['a+full']);
  });

  it('are repeated one by one after any error, if single items can fail', async () => {
    const { commits, take } = openGroup(() => false);
    expect(await take('a', 'full', 'c')).toEqual(['A', 'no room', 'C']);
    expect(commits).toEqual(['a+full+c', 'a', 'full', 'c']);
  });
});

describe('submissions', () => {
  /** The offset of the clock, which a test can increase. */
  const clock = {
    aheadMs: 0,
    now: () => systemClock.now() + clock.aheadMs,
    after: systemClock.after.bind(systemClock),
  };
  const app = useApp({ clock });
  const commits = async () => {
    // Within a second, the server would return the cached metrics.
    clock.aheadMs += 1_000;
    return (
      reading((await call(app.url, '/metrics')).text, 'dawatch_ledger_commit_duration_seconds_count') ?? Number.NaN
    );
  };

  it('that are cancelled concurrently share a commit and get their own responses', async () => {
    const ids = Array.from({ length: 15 }, (_, index) => `at-once-${index}`);
    await post(app.url, { submission_ids: ids });
    const before = await commits();
    const { hostname, port } = new URL(app.url);
    const cancel = (id: string, end = '') =>
      `DELETE ${pathOf(id)} HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n${end}\r\n`;
    const socket = connect(Number(port), hostname);
    socket.write(`${ids.map((id) => cancel(id)).join('')}${cancel('never', 'connection: close\r\n')}`);
    const received = await text(socket);
    expect(received.match(/(?<=HTTP\/1.1 )\d+/g)).toEqual([...ids.map(() => '200'), '404']);
    expect(received.match(/(?<="submission_id":")[^"]+/g)).toEqual(ids);
    // Responses about them are committed meanwhile, too.
    expect((await commits()) - before).toBeLessThan(ids.length / 2);
  });

  it('that are read concurrently get their own responses, without later changes', async () => {
    const ids = Array.from({ length: 6 }, (_, index) => `read-${index}`);
    await post(app.url, { submission_ids: ids });
    const { hostname, port } = new URL(app.url);
    const read = (id: string, end = '') =>
      `GET ${pathOf(id)} HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n${end}\r\n`;
    const socket = connect(Number(port), hostname);
    const requested = ['never', ...ids.toReversed(), 'read-0', ...ids];
    socket.write(`${requested.map((id) => read(id)).join('')}${read('never', 'connection: close\r\n')}`);
    const received = await text(socket);
    const known = requested.filter((id) => id !== 'never');
    expect(received.match(/(?<=HTTP\/1.1 )\d+/g)).toEqual(['404', ...known.map(() => '200'), '404']);
    expect(received.match(/(?<="submission_id":")[^"]+/g)).toEqual(known);
    expect(received.match(/"history":\[\{/g)).toHaveLength(known.length);
    const mixed = connect(Number(port), hostname);
    const requestText = (method: string, id: string, end = '') => read(id, end).replace('GET', method);
    const calls = [
      requestText('DELETE', 'read-1'),
      read('read-2'),
      requestText('DELETE', 'read-2', 'connection: close\r\n'),
    ];
    mixed.write(calls.join(''));
    const states = (await text(mixed)).match(
      /(?<="status":")[^"]+(?=","upstream_state":null,"data":null,"error":null,"tracked_at")/g,
    );
    expect(states).toEqual(['cancelled', 'tracking', 'cancelled']);
  });
});
