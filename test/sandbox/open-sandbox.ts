import { onTestFinished } from 'vitest';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';

/** A whole block and a whole run of the fallback job: 20 s and 10 s both divide it. */
export const START_MS = 1_760_000_000_000;

export type OpenSandbox = Sandbox & {
  clock: { ms: number };
  submit(data?: string): Promise<string>;
  lookUp(submissionId: string, headers?: Record<string, string>): Promise<Response>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
};

/**
 * A sandbox on a free port, by default in the world `ideal`, whose clock only the test advances;
 * closed when the test ends.
 */
export async function openSandbox(options: SandboxOptionsInput = {}): Promise<OpenSandbox> {
  const clock = { ms: START_MS };
  const sandbox = await startSandbox({
    options: { world: 'ideal', rowDelayMs: 0, ...options },
    now: () => clock.ms,
  });
  onTestFinished(() => sandbox.close());
  const key = { 'x-api-key': 'sandbox-key' };
  const post = (path: string, body: object) =>
    fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: { ...key, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${sandbox.url}${path}`, { headers, redirect: 'manual' });

  return {
    ...sandbox,
    clock,
    get,
    lookUp: (submissionId, headers = key) =>
      get(`/v1/get_submission_info?submission_id=${submissionId}`, headers),
    async submit(data = 'some data') {
      const response = (await (await post('/v1/submit_data', { data })).json()) as {
        submission_id: string;
      };
      return response.submission_id;
    },
  };
}
