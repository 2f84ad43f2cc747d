import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { selfSigned } from '../../support/servers/receiver.ts';
import { openFaultyUpstream } from '../support/faulty-upstream.ts';
import { dataByIdOf } from '../support/stored-data.ts';
import { prepareWorld } from '../support/world.ts';
import { OUTAGES, type Outage, WAITS } from './outages.ts';

const NAME = 'DNS:upstream.test';
const OUT_MS = 1_200;
const tls = selfSigned(NAME);
const [untrusted, misnamed] = [selfSigned(NAME), selfSigned('DNS:other.test')];
const FRAGILE_DNS = new URL('./fragile-dns.ts', import.meta.url).href;

describe.skipIf(!tls)('with TLS', () => {
  test('an upstream that fails completely, in one way after another, loses nothing and is polled again', async () => {
    if (!tls || !untrusted || !misnamed) return;
    const upstream = await openFaultyUpstream(tls);
    const world = await prepareWorld('upstream outages', {
      upstreamUrl: `https://upstream.test:${upstream.port}`,
    });
    upstream.sandboxUrl = world.sandbox.url;
    const { client } = world.server;
    const dnsFile = join(world.folder, 'dns');
    const dns = (code: string) => writeFileSync(dnsFile, code);
    dns('');
    const trusted = join(world.folder, 'trusted.pem');
    writeFileSync(trusted, tls.cert + misnamed.cert);
    await world.start({
      nodeOptions: ['--import', FRAGILE_DNS],
      env: { FRAGILE_DNS: dnsFile, NODE_EXTRA_CA_CERTS: trusted },
    });
    const outages: Record<string, Outage> = {
      ...OUTAGES,
      'an untrusted certificate': {
        begin: () => upstream.showCertificate(untrusted),
        reportedAs: 'down',
      },
      'a certificate for another name': {
        begin: () => upstream.showCertificate(misnamed),
        reportedAs: 'down',
      },
    };
    for (const [name, { begin, reportedAs }] of Object.entries(outages)) {
      const before = { down: reportCount('down'), unauthorized: reportCount('unauthorized') };
      begin(upstream, dns);
      const ids = await world.track(10);
      const endsAt = performance.now() + OUT_MS;
      while (
        performance.now() < endsAt ||
        (reportedAs && reportCount(reportedAs) === before[reportedAs])
      ) {
        expect(performance.now(), `${name}: the outage was not reported`).toBeLessThan(
          endsAt + 60_000,
        );
        expect((await fetch(`${world.server.url}/livez`)).status, name).toBe(200);
        await sleep(100);
      }
      for (const id of ids)
        expect([name, (await client.get(id)).status]).toEqual([name, 'tracking']);
      dns('');
      upstream.stopFaults();
      for (const id of ids)
        expect([name, (await client.waitUntilFinal(id, { timeoutMs: 90_000 })).status]).toEqual([
          name,
          'finalized',
        ]);
    }

    for (const [name, fault] of Object.entries(WAITS)) {
      const requestTimes: number[] = [];
      upstream.aboutAll = (exchange) => {
        requestTimes.push(performance.now());
        return fault(exchange);
      };
      await world.track(10);
      while (requestTimes.length === 0) await sleep(10);
      await sleep(2_500);
      // Requests in flight have arrived after a second; a request within the other two ignores the
      // requested delay.
      const [first = 0] = requestTimes;
      expect(
        requestTimes.filter((at) => at > first + 1_000 && at < first + 2_500),
        name,
      ).toEqual([]);
      upstream.stopFaults();
    }

    await world.expectSurvived();
    const expectedData = dataByIdOf(world.server.file);
    const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
    for (const id of world.expected.keys())
      expect(expectedData.get(id)?.block_hash, id).toBe(blockOf(id));
    expect(upstream.followed).toEqual([]);

    function reportCount(what: 'down' | 'unauthorized'): number {
      return world.server.logged(`upstream.${what}`).length;
    }
  });
});
