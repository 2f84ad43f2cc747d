import type { Machine } from '../machine/machine.ts';
import type { Network, Received } from '../machine/network.ts';
import type { Random } from '../machine/random.ts';
import type { ACTIONS } from './faults.ts';
import { DAY_MS, DEADLINE_MS, MINUTE_MS, TOKEN } from './server.ts';
import type { Upstream } from './upstream.ts';

export const CALLBACK_URL = 'https://caller.test';
const OPEN = ['tracking', 'pending', 'failing'];
const RETRY_MS = 5_000;
/** The upstream finalizes some submissions before this deadline, and others after it. */
const SOON_MS = 20_000;
const MEAN_PAUSE_MS = 30 * MINUTE_MS;

/** A submission whose tracking was acknowledged. Times are outside of the machine. */
/** `mayEndOpen`: it was cancelled, or its deadline may pass before the upstream finalizes it. */
export type Acknowledged = { id: string; at: number; mayEndOpen: boolean };

type CallersDeps = {
  machine: Machine;
  network: Network;
  upstream: Upstream;
  random: Random;
  without: ReadonlySet<string>;
  onDefect: (text: string) => void;
  /** Whether a request may be refused because the disk is full or was a moment ago. */
  mayRefuse: () => boolean;
  note: (occurrence: string) => void;
};

/**
 * The clients of the server: they submit data, track it until that is acknowledged, and use the
 * other endpoints at random.
 */
export class Callers {
  /** By id. */
  readonly acknowledged = new Map<string, Acknowledged>();
  /** The same, in order. */
  readonly inOrder: Acknowledged[] = [];
  isActive = true;
  readonly #deps: CallersDeps;

  constructor(deps: CallersDeps) {
    this.#deps = deps;
    this.#pause();
  }

  #pause(): void {
    const { machine, random } = this.#deps;
    machine.later(random.waitMs(MEAN_PAUSE_MS), () => {
      if (!this.isActive) return;
      void this.#act();
      this.#pause();
    });
  }

  async #act(): Promise<void> {
    const { machine, random, upstream } = this.#deps;
    const draw = random.next();
    // Older ones may have been deleted.
    const known = this.acknowledged
      .values()
      .filter(({ at }) => at > machine.now - DAY_MS)
      .toArray();
    const any = known.length > 0 ? random.pick(known) : undefined;
    const shape = random.next();
    if (draw < 0.5 || !any) return this.#track([upstream.submit()], shape);
    if (draw < 0.52) return this.submitMany();
    if (draw < 0.55)
      return this.#track([`00000000-0000-4000-8000-${random.bytes(6).toString('hex')}`], shape);
    const path = `/v1/submissions/${any.id}`;
    if (draw < 0.58) return this.#track([any.id], shape);
    if (draw < 0.66) return this.#unlessLeftOut('cancels', () => this.#cancel(any));
    if (draw < 0.78) return this.#unlessLeftOut('retracks', () => this.#retrack(any));
    if (draw < 0.84) return this.#unlessLeftOut('updates', () => this.#update(any, shape));
    if (draw < 0.9) await this.#call('GET', path, [200, 404]);
    else if (draw < 0.95)
      await this.#call('GET', `/v1/get_submission_info?submission_id=${any.id}`);
    else
      await this.#call(
        'GET',
        random.pick(['/v1/submissions', '/v1/overview', '/v1/deliveries', '/v1/webhooks']),
        [200],
      );
  }

  async #unlessLeftOut(action: (typeof ACTIONS)[number], act: () => Promise<void>): Promise<void> {
    const { without, note } = this.#deps;
    if (without.has(action)) return;
    note(action);
    await act();
  }

  /** Polls a submission on demand. */
  look(random: Random): void {
    const known = [...this.acknowledged.values()];
    if (known.length === 0) return;
    const { id } = random.pick(known);
    void this.#call('GET', `/v1/get_submission_info?submission_id=${id}`);
  }

  /** More than the request budget allows at once. */
  submitMany(): void {
    const { random, upstream } = this.#deps;
    const ids = Array.from({ length: random.between(20, 40) }, () => upstream.submit());
    void this.#track(ids, random.next());
  }

  /** Repeats the request until it is acknowledged. */
  async #track(ids: string[], shape: number): Promise<void> {
    const options = {
      ...(shape < 0.3 && { metadata: { order: ids.length } }),
      ...(shape > 0.2 && shape < 0.5 && { callback_url: `${CALLBACK_URL}/any` }),
    };
    const response = await this.#call('POST', '/v1/submissions', [202], {
      submission_ids: ids,
      ...options,
    });
    if (response?.status !== 202) return this.#later(() => this.#track(ids, shape));
    for (const id of ids) {
      if (this.acknowledged.has(id)) continue;
      const one = { id, at: this.#deps.machine.now, mayEndOpen: false };
      this.acknowledged.set(id, one);
      this.inOrder.push(one);
    }
  }

  async #cancel(submission: Acknowledged): Promise<void> {
    submission.mayEndOpen = true;
    const response = await this.#call('DELETE', `/v1/submissions/${submission.id}`, [200, 404]);
    if (response?.status === 200 && OPEN.includes(JSON.parse(response.body).status))
      this.#deps.onDefect(`a cancelled submission is open: ${response.body}`);
  }

  async #retrack({ id }: Acknowledged): Promise<void> {
    await this.#call('POST', '/v1/submissions', [202], { submission_id: id, retrack: true });
  }

  async #update(submission: Acknowledged, shape: number): Promise<void> {
    const isSoon = shape > 0.85;
    if (isSoon) submission.mayEndOpen = true;
    const deadlineMs = isSoon ? SOON_MS : DEADLINE_MS;
    const deadline = new Date(this.#deps.machine.wall() + deadlineMs).toISOString();
    const change =
      shape < 0.4
        ? { metadata: { changed: shape } }
        : shape < 0.7
          ? { callback_url: null }
          : { deadline };
    // On a clock that is ahead, a deadline that is soon has passed.
    const expected = [200, 404, 409, ...(isSoon ? [400] : [])];
    await this.#call('PATCH', `/v1/submissions/${submission.id}`, expected, change);
  }

  #later(run: () => Promise<void>): void {
    this.#deps.machine.later(RETRY_MS, () => void run());
  }

  /**
   * `expected`: the statuses that are no defect; absent: any. A server that is down or has a full
   * disk may refuse.
   */
  async #call(
    method: string,
    path: string,
    expected?: number[],
    body?: unknown,
  ): Promise<Received> {
    const { network, onDefect, mayRefuse } = this.#deps;
    const received = await network.call(method, path, TOKEN, body);
    if (
      received &&
      expected &&
      !expected.includes(received.status) &&
      !(received.status >= 500 && mayRefuse())
    )
      onDefect(`${method} ${path} responded ${received.status}: ${received.body.slice(0, 300)}`);
    return received;
  }
}
