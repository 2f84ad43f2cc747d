import type { Clock } from '../lib/clock.ts';
import { type HttpPost, toSendResult } from '../notifications/transport/http-post.ts';

type HeartbeatSettings = {
  /** Contains a secret. */
  url: string;
  everyMs: number;
};

/**
 * sent: the receiver responded with 2xx. failed: it did not. withheld: not sent, because this
 * server does not work.
 */
export const HEARTBEAT_RESULTS = ['sent', 'failed', 'withheld'] as const;
export type HeartbeatResult = (typeof HEARTBEAT_RESULTS)[number];

type HeartbeatDeps = {
  clock: Clock;
  get: HttpPost['get'];
  /** Returns why this server does not work; undefined: it works. */
  defect: () => string | undefined;
  /** Called once per interval. `reason`: one sentence without the address; null for `sent`. */
  onBeat: (beat: { result: HeartbeatResult; reason: string | null }) => void;
};

/**
 * Calls an address at an interval while this server works. The service behind the address reports
 * when the calls stop (a dead man's switch). Without settings it sends no calls.
 */
export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  #settings: HeartbeatSettings | undefined;
  #cancelTimer: (() => void) | undefined;
  /** The call in flight. */
  #call: AbortController | undefined;

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
  }

  /** Replaces the settings and calls the new address at once. Equal settings change nothing. */
  start(settings: HeartbeatSettings | undefined): void {
    if (settings?.url === this.#settings?.url && settings?.everyMs === this.#settings?.everyMs)
      return;
    this.stop();
    this.#settings = settings;
    if (settings) this.#schedule(settings, 0);
  }

  stop(): void {
    this.#settings = undefined;
    this.#cancelTimer?.();
    this.#call?.abort();
    this.#call = undefined;
  }

  #schedule(settings: HeartbeatSettings, delayMs: number): void {
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => {
      this.#schedule(settings, settings.everyMs);
      void this.#beat(settings);
    });
  }

  async #beat({ url }: HeartbeatSettings): Promise<void> {
    const { defect, get, onBeat } = this.#deps;
    const reason = defect();
    if (reason !== undefined) return onBeat({ result: 'withheld', reason });
    // The previous call is still in flight; its time limit ends it.
    if (this.#call) return;
    const call = new AbortController();
    this.#call = call;
    const result = toSendResult(await get({ url, signal: call.signal }));
    // Stopped, or replaced by other settings.
    if (this.#call !== call) return;
    this.#call = undefined;
    if (result.kind === 'delivered') onBeat({ result: 'sent', reason: null });
    else onBeat({ result: 'failed', reason: result.error });
  }
}
