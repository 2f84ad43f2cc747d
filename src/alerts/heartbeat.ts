import type { Clock } from '../lib/clock.ts';
import { toSendResult } from '../notifications/channels/channel.ts';
import { reach } from '../notifications/doctor.ts';
import type { HttpPost } from '../notifications/transport/http-post.ts';
import type { Check } from '../operations/doctor/finding.ts';
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
    const result = toSendResult(await get({ url, signal: call.signal }));
    if (this.#isStopped) return;
    this.#call = undefined;
    if (result.kind === 'delivered') onBeat({ result: 'sent', reason: null });
    else onBeat({ result: 'failed', reason: result.error });
  }
}

export function heartbeatCheck(
  { heartbeat: { url } }: AlertSettings,
  limitMs: number,
): Check | undefined {
  if (url === undefined) return undefined;
  const name = 'heartbeat';
  const action = 'verify that it runs, and verify heartbeat.url';
  return { name, run: () => reach(name, { url, limitMs, action }) };
}
