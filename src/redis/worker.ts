import type { Clock } from '../lib/clock.ts';
import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { openUpstreams, timeoutMsOf } from '../polling/upstreams.ts';
import { MessageSigner } from './messages.ts';
import { logWorker, PollWorker } from './poll-worker.ts';
import { redisOf } from './redis.ts';

/** Starts `dawatch worker`: a poll worker for the server at the same Redis. Throws StartError. */
export function startWorker(deps: {
  config: Config;
  log: Log;
  clock: Clock;
  version: string;
  /** A unique name. */
  name: string;
}): { close(): Promise<void> } {
  const { config, log, clock, version, name } = deps;
  const redis = redisOf(config);
  if (!redis)
    throw new StartError(
      'a worker requires the Redis of its server: set DAWATCH_REDIS_URL or redis.url',
    );
  const upstreams = openUpstreams(config, { clock, version });
  const usable = new Map(upstreams.named);
  const worker = new PollWorker({
    redis,
    signer: new MessageSigner(redis.secret),
    name,
    version,
    concurrency: config.worker.concurrency,
    clock,
    sendPoll: upstreams.sendPoll,
    timeoutMsOf: (upstreamName) => {
      const upstream = usable.get(upstreamName);
      return upstream && timeoutMsOf(upstream);
    },
    onEvent: logWorker(log),
  });
  log.info({ worker: name, upstreams: upstreams.names, version }, 'worker.started');
  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await worker.close(config.server.shutdown_s * 1_000);
    await upstreams.close();
    log.info('worker.stopped');
  }
  return {
    close() {
      closing ??= close();
      return closing;
    },
  };
}
