import { describe, expect, test } from 'vitest';
import { createModel, type Model } from '../../src/sandbox/model.ts';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { START_MS } from './open-sandbox.ts';

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function modelWith(options: SandboxOptionsInput): Model {
  return createModel(sandboxOptionsSchema.parse({ world: 'ideal', rowDelayMs: 0, ...options }));
}

/** Every state a lookup would have seen, in order, each with the seconds since the start. */
function historyOf(model: Model, id: string, forS: number): string[] {
  const history: string[] = [];
  for (
    let nowMs: number | undefined = START_MS;
    nowMs !== undefined && nowMs <= START_MS + forS * 1000;
  ) {
    const row = model.read(id, nowMs);
    const seen = row === undefined ? 'none' : row.state;
    if (history.at(-1)?.split('@')[0] !== seen)
      history.push(`${seen}@${(nowMs - START_MS) / 1000}`);
    nowMs = model.nextChangeAt(nowMs);
  }
  return history;
}

function submitMany(model: Model, count: number, everyMs: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    model.submit(`data ${index}`, START_MS + index * everyMs),
  );
}

describe('a submission', () => {
  test('gets a UUID at once and its row later', () => {
    const model = modelWith({ rowDelayMs: 500 });
    const id = model.submit('data', START_MS);
    expect(id).toMatch(UUID_V4);
    expect(model.read(id, START_MS)).toBeUndefined();
    const appearsMs = model.nextChangeAt(START_MS) ?? Number.NaN;
    expect(model.read(id, appearsMs - 0.001)).toBeUndefined();
    expect(model.read(id, appearsMs)).toMatchObject({
      state: 'Pending',
      error: null,
      createdAtMs: START_MS,
    });
  });

  test('may never get a row', () => {
    const model = modelWith({ lostRate: 1 });
    const id = model.submit('data', START_MS);
    expect(model.nextChangeAt(START_MS)).toBeUndefined();
    expect(model.read(id, START_MS + 1e9)).toBeUndefined();
  });

  test('is final 40 s after the next block was produced, on the block clock', () => {
    const model = modelWith({});
    const id = model.submit('data', START_MS + 1);
    expect(model.read(id, START_MS + 59_999)?.state).toBe('Pending');
    expect(model.finalizedAt(id, START_MS + 59_999)).toBeUndefined();
    expect(model.read(id, START_MS + 60_000)?.state).toBe('Finalized');
    expect(model.finalizedAt(id, START_MS + 70_000)).toBe(START_MS + 60_000);
  });
});

describe('parallel sending', () => {
  test('finalizes hundreds of submissions at one instant, once per block, each with its own index', () => {
    const model = modelWith({});
    const ids = submitMany(model, 600, 100);
    const instants = new Set(ids.map((id) => model.finalizedAt(id, START_MS + 1e6)));
    expect([...instants].map((atMs) => Number(atMs) - START_MS)).toEqual([60_000, 80_000, 100_000]);
    const blocks = ids.map((id) => model.read(id, START_MS + 1e6)?.block);
    expect(new Set(blocks.map((block) => block?.hash)).size).toBe(3);
    expect(new Set(blocks.map((block) => `${block?.number}/${block?.txIndex}`)).size).toBe(600);
    expect(new Set(blocks.map((block) => block?.txHash)).size).toBe(600);
  });
});

describe('serial senders', () => {
  test('send the next submission only when the block of the previous one is final, in the order of submission', () => {
    const model = modelWith({ senders: 3 });
    const ids = submitMany(model, 9, 1);
    const finalS = ids.map(
      (id) => (Number(model.finalizedAt(id, START_MS + 1e6)) - START_MS) / 1000,
    );
    expect(finalS).toEqual([60, 60, 60, 120, 120, 120, 180, 180, 180]);
  });
});

describe('a failed attempt', () => {
  test('times out after 120 s', () => {
    const model = modelWith({ errorRate: 1, timeoutRate: 1 });
    const history = historyOf(model, model.submit('data', START_MS), 300);
    expect(history).toEqual(['Pending@0', 'Error@120', 'Pending@130', 'Error@250', 'Pending@260']);
  });
});

describe('a regression', () => {
  const model = modelWith({ regressRate: 1 });
  const ids = submitMany(model, 200, 0);
  const before = ids.map((id) => model.read(id, START_MS + 89_999));
  const after = ids.map((id) => model.read(id, START_MS + 90_000));
  const replaced = ids
    .map((_, index) => index)
    .filter((index) => after[index]?.state === 'Finalized');

  test('changes about half of the finalized submissions to Error', () => {
    expect(before.every((row) => row?.state === 'Finalized')).toBe(true);
    expect(replaced.length).toBeGreaterThan(70);
    expect(replaced.length).toBeLessThan(130);
    for (const row of after)
      if (row?.state !== 'Finalized') expect(row).toMatchObject({ state: 'Error' });
  });
});

describe('the model', () => {
  const options = {
    world: 'rough',
    senders: 4,
    rowDelayMs: 300,
    errorRate: 0.3,
    timeoutRate: 0.2,
    stragglerRate: 0.1,
    regressRate: 0.3,
  } as const;

  function rowsOf(model: Model, isWatched: boolean): object {
    const ids: string[] = [];
    for (let index = 0; index < 300; index += 1) {
      const nowMs = START_MS + index * 700;
      ids.push(model.submit(`data ${index}`, nowMs));
      if (isWatched) for (const id of ids) model.read(id, nowMs + 350);
    }
    return ids.map((id) => ({
      row: model.read(id, START_MS + 4e6),
      finalizedAt: model.finalizedAt(id, START_MS + 4e6),
    }));
  }

  test('produces the same results with the same seed, however often it is read in between', () => {
    expect(rowsOf(modelWith(options), true)).toEqual(rowsOf(modelWith(options), false));
  });
});
