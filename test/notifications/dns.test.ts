import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import {
  createAddressGuard,
  createLookup,
} from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

/** A nameserver that receives queries and never responds. */
async function silentNameserver(): Promise<string> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  onTestFinished(() => {
    socket.close();
  });
  return `127.0.0.1:${socket.address().port}`;
}

function hostsFile(text: string): string {
  const file = join(tempFolder(), 'hosts');
  writeFileSync(file, text);
  return file;
}

it('a name in the hosts file resolves to the address there', async () => {
  const file = hostsFile(
    '# comment\n127.0.0.1 localhost\n10.1.2.3  Good.example alias # good.example\n::1 good.example\n',
  );
  const lookup = createLookup({ hostsFile: file, servers: [await silentNameserver()] });
  const found = await new Promise((resolve) =>
    lookup('good.EXAMPLE', { all: true }, (_error, addresses) => resolve(addresses)),
  );
  expect(found).toEqual([
    { address: '10.1.2.3', family: 4 },
    { address: '::1', family: 6 },
  ]);
});

it('names with a silent nameserver delay no other lookup', async () => {
  const receiver = await openReceiver();
  const lookup = createLookup({
    hostsFile: hostsFile('127.0.0.1 good.example\n'),
    servers: [await silentNameserver()],
  });
  const guard = createAddressGuard({ allow: ['127.0.0.0/8'] });
  const http = createHttpPost({ guard, version: 'test', clock: new HeldClock(1_000), lookup });
  onTestFinished(() => http.close());
  const stop = new AbortController();
  const { signal } = stop;
  const silent = Array.from({ length: 50 }, (_, index) =>
    http.post({ url: `http://silent-${index}.example/`, body: '{}', signal }),
  );
  const order: string[] = [];
  void silent[0]?.then(() => order.push('silent'));
  const good = await http.post({
    url: `http://good.example:${receiver.port}/`,
    body: '{}',
    signal,
  });
  order.push('good');
  stop.abort();
  expect(good).toMatchObject({ kind: 'response', httpStatus: 200 });
  for (const result of await Promise.all(silent))
    expect(result).toMatchObject({ kind: 'no_response' });
  expect(order).toEqual(['good', 'silent']);
});
