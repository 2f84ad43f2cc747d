import { MessageSigner } from '../../../src/redis/messages.ts';
import { PollWorker } from '../../../src/redis/poll-worker.ts';
import type { UpstreamResponse } from '../../../src/submissions/classify.ts';
import type { Machine } from '../machine/machine.ts';
import type { Reply } from '../machine/network.ts';
import type { Random } from '../machine/random.ts';
import { type RedisHost, redisModel } from '../redis/redis-model.ts';
import { PREFIX, REDIS_URL, SECRET } from './server.ts';
import { UPSTREAM_URL, type Upstream } from './upstream.ts';

const TIMEOUT_MS = 10_000;
const RESTART_MS = 5_000;
const CONCURRENCY = 4;

/** `server.shutdown_s`: longer than a request may take. */
const CLOSE_WITHIN_MS = 15_000;

type WorkerDeps = {
  name: string;
  machine: Machine;
  upstream: Upstream;
  random: Random;
  onDefect: (text: string) => void;
  /** When Redis did not work, the last time. */
  disturbedAt: () => number;
};

/** A machine with a poll worker, which is started again after each kill. Its clock is right. */
export class WorkerMachine {
  readonly #deps: WorkerDeps;
  #end = () => {};
  #stop = async () => {};

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#start();
  }

  /** Ends the worker at once, with its jobs and requests. */
  kill(): void {
    this.#end();
    this.#end = () => {};
    this.#stop = async () => {};
    this.#deps.machine.later(RESTART_MS, () => this.#start());
  }

  /** Stops the worker as SIGTERM does. */
  async stop(): Promise<void> {
    await this.#stop();
  }

  #start(): void {
    const { name, machine, onDefect, disturbedAt } = this.#deps;
    let isAlive = true;
    const after = (delayMs: number, run: () => void) =>
      machine.later(delayMs, () => isAlive && run());
    const host: RedisHost = { after, isAlive: () => isAlive };
    this.#end = () => {
      isAlive = false;
      redisModel.drop(host);
    };
    const serverHost = redisModel.host;
    redisModel.host = host;
    const worker = new PollWorker({
      redis: { url: REDIS_URL, prefix: PREFIX },
      signer: new MessageSigner(SECRET),
      name,
      version: '0.0.0-simulation',
      concurrency: CONCURRENCY,
      clock: { now: () => Math.floor(machine.now), after },
      sendPoll: (_upstream, submissionId) => this.#poll(submissionId, host),
      timeoutMsOf: () => TIMEOUT_MS,
      onEvent() {},
    });
    redisModel.host = serverHost;
    this.#stop = async () => {
      this.#stop = async () => {};
      const from = machine.now;
      await worker.close(CLOSE_WITHIN_MS);
      if (!isAlive) return;
      const kept = redisModel.activeJobs(host);
      if (kept > 0 && disturbedAt() < from)
        onDefect(`the worker ${name} has stopped with ${kept} jobs`);
      this.kill();
    };
  }

  #poll(submissionId: string, host: RedisHost): Promise<UpstreamResponse> {
    const { machine, upstream, random } = this.#deps;
    let isOver = false;
    const reply = upstream.receive({
      url: new URL(`${UPSTREAM_URL}/v1/get_submission_info?submission_id=${submissionId}`),
      body: '',
      headers: {},
      isOver: () => isOver || !host.isAlive(),
    });
    return new Promise((resolve) => {
      const delayMs =
        reply.kind === 'hang'
          ? TIMEOUT_MS
          : random.between(1, 80) + (('delayMs' in reply && reply.delayMs) || 0);
      host.after(Math.min(delayMs, TIMEOUT_MS), () => {
        isOver = true;
        resolve(responseOf(reply, new Date(machine.now)));
      });
    });
  }
}

function responseOf(reply: Reply, at: Date): UpstreamResponse {
  if (reply.kind === 'hang') return { kind: 'failure', reason: 'timeout', detail: 'no response' };
  if (reply.kind === 'reset') return { kind: 'failure', reason: 'network', detail: 'ECONNRESET' };
  const retryAfter = reply.headers?.['retry-after'] ?? null;
  return {
    kind: 'response',
    httpStatus: reply.status,
    retryAfter,
    date: at.toUTCString(),
    body: reply.body,
  };
}
