import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import type { PollEngine } from '../../src/polling/poll-engine.ts';
import type { Observation } from '../../src/submissions/classify.ts';
import { openSandbox } from '../sandbox/open-sandbox.ts';
import { deadAddress, KEY, serve } from '../support/servers/upstream-server.ts';
import { eventually } from '../support/until.ts';

/**
 * Opens an engine for one upstream, `default`. The implementation closes its resources when the
 * test ends.
 */
type EngineSetting = { url: string; apiKey: string; timeoutMs: number };
export type OpenEngine = (setting: EngineSetting) => PollEngine | Promise<PollEngine>;

const UNKNOWN = '11111111-2222-4333-8444-555555555555';
const PENDING = '{"state":"Pending","error":null,"data":null}';

/** The contract that every poll engine has to fulfil. */
export function describeEngine(name: string, openEngine: OpenEngine): void {
  const open = (url: string, setting: Partial<EngineSetting> = {}) =>
    openEngine({ url, apiKey: KEY, timeoutMs: 10_000, ...setting });

  describe(`${name}, as a poll engine`, () => {
    it('reports every submission of a batch exactly once, with the state that the upstream returned', async () => {
      const sandbox = await openSandbox({ slotS: 1, finalityGap: 1 });
      const early = await sandbox.submit('early');
      sandbox.clock.ms += 60_000;
      const late = await sandbox.submit('late');
      sandbox.clock.ms += 1;
      const engine = await open(sandbox.url, { apiKey: 'sandbox-key' });
      const observations = await polled(engine, [early, late, UNKNOWN, 'not-a-uuid']);
      expect(
        Object.fromEntries(observations.map(({ submissionId, kind }) => [submissionId, kind])),
      ).toEqual({
        [early]: 'finalized',
        [late]: 'pending',
        [UNKNOWN]: 'not_found',
        'not-a-uuid': 'rejected',
      });
      expect(observations).toHaveLength(4);
      expect(observations.find(({ submissionId }) => submissionId === early)).toMatchObject({
        state: 'Finalized',
        blockNumber: expect.any(Number),
      });
    });

    it('a hanging request delays no other batch', async () => {
      const held: ServerResponse[] = [];
      const { url } = await serve((request, response) => {
        if (request.url?.endsWith('hangs')) held.push(response);
        else response.end(PENDING);
      });
      const engine = await open(url);
      const hanging = polled(engine, ['hangs']);
      expect((await polled(engine, ['a'])).map(({ kind }) => kind)).toEqual(['pending']);
      await eventually(() => expect(held).toHaveLength(1));
      for (const response of held) response.end(PENDING);
      expect(await hanging).toHaveLength(1);
    });

    it.each(['hang', 'html_502', 'huge'] as const)(
      'a failure (%s) is an observation too',
      async (kind) => {
        const sandbox = await openSandbox();
        sandbox.injectFault({ kind });
        const timeoutMs = kind === 'hang' ? 300 : 10_000;
        const engine = await open(sandbox.url, { apiKey: 'sandbox-key', timeoutMs });
        const observations = await polled(engine, [UNKNOWN, 'another']);
        expect(observations.map((observation) => observation.kind)).toEqual([
          'unavailable',
          'unavailable',
        ]);
        for (const { error } of observations) expect(error).not.toContain('sandbox-key');
      },
    );

    it('reports throttling with its delay, and a refused key', async () => {
      const sandbox = await openSandbox();
      const engine = await open(sandbox.url, { apiKey: 'wrong' });
      expect(await polled(engine, [UNKNOWN])).toMatchObject([{ kind: 'unauthorized' }]);
      sandbox.injectFault({ kind: 'throttle', retryAfterS: 7, count: 1 });
      expect(await polled(engine, [UNKNOWN])).toMatchObject([
        { kind: 'throttled', retryAfterMs: 7_000 },
      ]);
    });

    it('without an upstream, reports every submission and does not reject', async () => {
      const observations = await polled(await open(await deadAddress()), ['a', 'b']);
      expect(observations).toMatchObject([{ kind: 'unavailable' }, { kind: 'unavailable' }]);
    });

    it('at is the time of the response, durationMs the duration of the request', async () => {
      const { url } = await serve(async (_request, response) => {
        await sleep(100);
        response.end(PENDING);
      });
      const engine = await open(url);
      const before = systemClock.now();
      const [observation] = await polled(engine, ['s']);
      const after = systemClock.now();
      expect(observation?.durationMs).toBeGreaterThanOrEqual(95);
      expect(observation?.at).toBeGreaterThanOrEqual(before + 95);
      expect(observation?.at).toBeLessThanOrEqual(after);
      expect(Number.isInteger(observation?.at)).toBe(true);
      expect((observation?.at ?? 0) - (observation?.durationMs ?? 0)).toBeGreaterThanOrEqual(
        before,
      );
    });
  });
}

/**
 * Returns all observations of a batch once its poll has completed; fails if another one follows.
 */
async function polled(engine: PollEngine, submissionIds: string[]): Promise<Observation[]> {
  const observations: Observation[] = [];
  await engine.poll({ upstream: 'default', submissionIds }, (observation) =>
    observations.push(observation),
  );
  const inTime = observations.length;
  onTestFinished(() =>
    expect(observations, 'reported after the poll was through').toHaveLength(inTime),
  );
  return observations;
}
