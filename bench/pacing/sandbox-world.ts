import type { Row } from '../../src/sandbox/chain/row.ts';
import { createModel } from '../../src/sandbox/model.ts';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../src/sandbox/options.ts';
import { createRateLimit } from '../../src/sandbox/routes/rate-limit.ts';
import type { Classification } from '../../src/submissions/classify.ts';
import { CHAIN_START_MS, type World } from './simulate.ts';

/** A chain of the sandbox. `gapChange`: the finality gap from `atMs` (epoch ms) on. */
export type Chain = {
  options: SandboxOptionsInput;
  gapChange?: { atMs: number; blocks: number };
};

/** Returns the sandbox's model of an upstream with its rate limit, without HTTP. */
export function sandboxWorld(given: SandboxOptionsInput, gapChange?: Chain['gapChange']): World {
  const options = sandboxOptionsSchema.parse(given);
  const model = createModel(options);
  // The chain runs whether or not submissions reach it.
  model.nextHeadAt(CHAIN_START_MS);
  const limit = createRateLimit(options);
  let pendingChange = gapChange;

  function changeGap(now: number): void {
    if (pendingChange === undefined || now < pendingChange.atMs) return;
    model.setFinalityGap(pendingChange.blocks, pendingChange.atMs);
    pendingChange = undefined;
  }

  return {
    submit(now) {
      changeGap(now);
      return model.submit('data', now);
    },
    respond(submissionId, now) {
      changeGap(now);
      const retryAfterMs = limit.refuses('key', now);
      if (retryAfterMs !== undefined) return { kind: 'throttled', error: 'HTTP 429', retryAfterMs };
      return classify(model.read(submissionId, now));
    },
    finalizedAt: (submissionId, now) => model.finalizedAt(submissionId, now),
  };
}

function classify(row: Row | undefined): Classification {
  if (!row) return { kind: 'not_found', error: 'Record not found', ambiguous: true };
  if (row.state === 'Error')
    return { kind: 'error', state: row.state, error: row.error ?? '', envelope: '' };
  const kind = row.state === 'Finalized' ? 'finalized' : 'pending';
  return {
    kind,
    state: row.state,
    error: null,
    envelope: '',
    blockNumber: row.block?.number ?? null,
  };
}
