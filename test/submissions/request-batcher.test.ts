import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { LedgerUnavailableError } from '../../src/ledger/errors.ts';
import { type BatchItem, batchReads, runBatch } from '../../src/submissions/request-batcher.ts';
import { pathOf, post } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

describe('items of one iteration of the event loop', () => {
  function openGroup() {
    const commits: string[] = [];
    const process = (names: readonly string[]) => {
      commits.push(names.join('+'));
      if (names.includes('full')) throw new LedgerUnavailableError('no room');
      if (names.includes('bad')) throw new Error('this one cannot be kept');
      return names.map((name) => name.toUpperCase());
    };
    const settled = (results: Promise<string>[]) =>
      Promise.all(results.map((result) => result.catch((error: Error) => error.message)));
    const readOne = batchReads(process);
    const read = (...names: string[]) => settled(names.map(readOne));
    const take = (...names: string[]) => {
      const group: BatchItem<string, string>[] = [];
      const results = names.map(
        (item) => new Promise<string>((resolve, reject) => group.push({ item, resolve, reject })),
      );
      runBatch(group, process);
      return settled(results);
    };
    return { commits, read, take };
  }

  it('share a transaction and get their own results', async () => {
    const { commits, read } = openGroup();
    expect(await read('a', 'b', 'c')).toEqual(['A', 'B', 'C']);
    expect(await read('d')).toEqual(['D']);
    expect(commits).toEqual(['a+b+c', 'd']);
  });

  it('are committed one by one if the batch fails', async () => {
    const { commits, take } = openGroup();
    expect(await take('a', 'bad', 'c')).toEqual(['A', 'this one cannot be kept', 'C']);
    expect(commits).toEqual(['a+bad+c', 'a', 'bad', 'c']);
  });

  it('fail together if the ledger cannot be written', async () => {
    const { commits, take } = openGroup();
    expect(await take('a', 'full')).toEqual(['no room', 'no room']);
    expect(commits).toEqual(['a+full']);
  });

  it('are read one by one after any error', async () => {
    const { commits, read } = openGroup();
    expect(await read('a', 'full', 'c')).toEqual(['A', 'no room', 'C']);
    expect(commits).toEqual(['a+full+c', 'a', 'full', 'c']);
  });
});

describe('submissions', () => {
  const app = useApp();

  it('that are read concurrently get their own responses', async () => {
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
  });
});
