import type { Clock } from '../lib/clock.ts';
import { toSendResult } from '../notifications/channels/channel.ts';
import { getOnce } from '../notifications/doctor.ts';
import type { HttpPost, PostResult } from '../notifications/transport/http-post.ts';
import { type Check, ok, problem } from '../operations/doctor/finding.ts';
import type { AlertSettings } from './settings.ts';

/** withheld: not sent, because this server does not work. */
export const HEARTBEAT_RESULTS = ['sent', 'failed', 'withheld'] as const;
export type HeartbeatResult = (typeof HEARTBEAT_RESULTS)[number];

type HeartbeatDeps = {
  url: string;
  everyMs: number;
  clock: Clock;
  get: HttpPost['get'];
  defect: () => string | undefined;
  /** Called once per interval. `reason`: one sentence without the address; null for `sent`. */
  onBeat: (beat: { result: HeartbeatResult; reason: string | null }) => void;
};

/** A dead man's switch: calls an address at an interval while this server works. */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  #isStopped = false;
  #cancelTimer: (() => void) | undefined;
  #call: AbortController | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  start(): void {
    if (!this.#isStopped) this.#schedule(0);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
    this.#call?.abort();
    this.#call = undefined;
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => {
      this.#schedule(this.#deps.everyMs);
      void this.#beat();
    });
  }

  async #beat(): Promise<void> {
    const { url, defect, get, onBeat } = this.#deps;
    const reason = defect();
    if (reason !== undefined) return onBeat({ result: 'withheld', reason });
    // The previous call is still in flight; its time limit ends it.
    if (this.#call) return;
    const call = new AbortController();
    this.#call = call;
    const failure = failureOf(await get({ url, signal: call.signal }));
    if (this.#isStopped) return;
    this.#call = undefined;
    onBeat({ result: failure === null ? 'sent' : 'failed', reason: failure });
  }
}

/** Returns why it was not accepted; null: it was. Healthchecks says with 200 that it was not. */
function failureOf(response: PostResult): string | null {
  const result = toSendResult(response);
  if (result.kind === 'failed') return result.error;
  const [text] = /not found|rate limited/i.exec(result.response ?? '') ?? [];
  return text === undefined ? null : `responded with ${result.httpStatus} and "${text}"`;
}

export function heartbeatCheck(
  { heartbeat: { url } }: AlertSettings,
  limitMs: number,
): Check | undefined {
  if (url === undefined) return undefined;
  const name = 'heartbeat';
  const { host } = new URL(url);
  const run = async () => {
    const failure = failureOf(await getOnce({ url, limitMs }));
    if (failure === null) return [ok(name, `${host} has accepted a heartbeat`)];
    return [problem(name, `${host}: ${failure}`, 'verify that it runs, and verify heartbeat.url')];
  };
  return { name, run };
}
