// Stands in for the package ioredis: a connection to the model of Redis.
import { EventEmitter } from 'node:events';
import { type RedisHost, type RedisModel, redisModel } from './redis-model.ts';

type Options = {
  enableOfflineQueue?: boolean;
  commandTimeout?: number;
  retryStrategy?: (times: number) => number;
};
type Work = (model: RedisModel) => unknown;
/** `isExecuted`: whether the server has received it. */
type Pending = {
  work: Work;
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  isExecuted: boolean;
};

/**
 * The way of some commands and replies. The others arrive at once, because a timer is most of the
 * work. The order of a connection is kept.
 */
const WAY_MS = 1;
/**
 * One of this number of commands has a way, on which it may get lost, and one of this number of
 * replies, whose content gets old.
 */
const ON_THE_WAY = 7;

export class ReplyError extends Error {}

export class Redis extends EventEmitter {
  status: 'connecting' | 'ready' | 'reconnecting' | 'wait' | 'end' = 'connecting';
  readonly host: RedisHost;
  readonly #address: string;
  readonly #options: Options;
  readonly #connection: { host: RedisHost; breakOff: () => void };
  #attempts = 0;
  /**
   * Commands without a reply, and those that wait for the connection. A list, because a set keeps
   * its old contents from the garbage collection of short-lived objects.
   */
  readonly #sent: Pending[] = [];
  #queued: Pending[] = [];

  constructor(address: string, options: Options = {}, host = redisModel.host) {
    super();
    this.#address = address;
    this.#options = options;
    this.host = host;
    this.#connection = { host, breakOff: () => this.#breakOff() };
    this.#connect();
  }

  duplicate(options?: Options): Redis {
    return new Redis(this.#address, { ...this.#options, ...options }, this.host);
  }

  disconnect(): void {
    if (this.status === 'end') return;
    this.status = 'end';
    this.#lose(new Error('Connection is closed.'), { also: this.#queued.splice(0) });
    this.emit('close');
    this.emit('end');
  }

  #connect(): void {
    this.host.after(WAY_MS, () => {
      if (!this.#isIn('connecting', 'reconnecting') || !this.host.isAlive()) return;
      if (!redisModel.isReachable) {
        this.emit('error', new Error('connect ECONNREFUSED'));
        this.#retry();
        return;
      }
      this.status = 'ready';
      this.#attempts = 0;
      redisModel.connections.add(this.#connection);
      for (const pending of this.#queued.splice(0)) this.#send(pending);
      this.emit('ready');
    });
  }

  #isIn(...states: Redis['status'][]): boolean {
    return states.includes(this.status);
  }

  #retry(): void {
    this.status = 'reconnecting';
    this.#attempts += 1;
    this.host.after(this.#options.retryStrategy?.(this.#attempts) ?? 1_000, () => {
      if (this.#isIn('reconnecting')) this.#connect();
    });
  }

  #breakOff(): void {
    // The server has received every second command that is on its way.
    for (const [index, pending] of this.#sent.entries())
      if (index % 2 === 0) this.#execute(pending);
    this.#lose(new Error('Connection is closed.'));
    this.#retry();
    this.emit('close');
  }

  #lose(error: Error, { also = [] }: { also?: Pending[] } = {}): void {
    redisModel.connections.delete(this.#connection);
    for (const pending of [...this.#sent.splice(0), ...also]) pending.reject(error);
  }

  /** Runs one command, or one script, on the server. */
  run<T>(work: (model: RedisModel) => T): Promise<T> {
    return new Promise<unknown>((resolve, reject) => {
      const pending = { work, resolve, reject, isExecuted: false };
      if (this.status === 'ready') this.#send(pending);
      else if (this.status === 'end' || this.#options.enableOfflineQueue === false)
        reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"));
      else this.#queued.push(pending);
    }) as Promise<T>;
  }

  #send(pending: Pending): void {
    const { host } = this;
    if (!host.isAlive()) return;
    const isFirst = this.#sent.every(({ isExecuted }) => isExecuted);
    this.#sent.push(pending);
    const arrive = () => {
      if (!this.#sent.includes(pending)) return;
      const reply = this.#execute(pending);
      if (reply instanceof Promise) this.#await(reply, pending);
      else this.#reply(reply, pending);
    };
    if (isFirst && redisModel.nextMessage() % ON_THE_WAY !== 0) arrive();
    else host.after(WAY_MS, arrive);
  }

  #execute(pending: Pending): unknown {
    if (pending.isExecuted) return undefined;
    pending.isExecuted = true;
    return pending.work(redisModel);
  }

  #reply(value: unknown, pending: Pending): void {
    const arrive = () => this.#end(pending) && pending.resolve(value);
    if (redisModel.nextMessage() % ON_THE_WAY === 0) this.host.after(WAY_MS, arrive);
    else arrive();
  }

  /** Only a read that blocks can take longer than the limit. */
  #await(reply: Promise<unknown>, pending: Pending): void {
    const { commandTimeout } = this.#options;
    const cancel =
      commandTimeout === undefined
        ? undefined
        : this.host.after(
            commandTimeout - WAY_MS,
            () => this.#end(pending) && pending.reject(new Error('Command timed out')),
          );
    void reply.then((value) => {
      cancel?.();
      this.#reply(value, pending);
    });
  }

  /** Returns whether the host still waits for the reply. */
  #end(pending: Pending): boolean {
    const index = this.#sent.indexOf(pending);
    if (index >= 0) this.#sent.splice(index, 1);
    return index >= 0 && this.host.isAlive();
  }

  /** Any command by its name. All are permitted. */
  call(): Promise<unknown> {
    return this.run(() => 'OK');
  }

  get(key: string): Promise<string | null> {
    return this.run((model) => model.get(key));
  }

  set(key: string, value: string): Promise<unknown> {
    return this.run((model) => model.set(key, value));
  }

  info(): Promise<string> {
    return this.run(info);
  }

  wait(): Promise<number> {
    return this.run(() => 0);
  }

  srandmember(key: string, count: number): Promise<string[]> {
    return this.run((model) => [...model.setOf(key)].slice(0, count));
  }

  srem(key: string, members: string[]): Promise<unknown> {
    return this.run((model) => {
      for (const member of members) model.setOf(key).delete(member);
    });
  }

  /** XREAD COUNT n [BLOCK ms] STREAMS key position. */
  xread(...args: (string | number)[]): Promise<unknown> {
    const blockMs = args.includes('BLOCK') ? Number(args[args.indexOf('BLOCK') + 1]) : undefined;
    const [key, position] = args.slice(-2).map(String) as [string, string];
    const count = Number(args[args.indexOf('COUNT') + 1]);
    const read = (model: RedisModel) => {
      const entries = model.read(key, position, count);
      return entries.length === 0 ? null : [[key, entries]];
    };
    return this.run((model) => {
      const found = read(model);
      if (found || blockMs === undefined) return found;
      return new Promise((resolve) => {
        const wake = () => {
          cancelWait();
          cancelLimit();
          resolve(read(model));
        };
        const cancelWait = model.wait(key, wake);
        const cancelLimit = this.host.after(blockMs, wake);
      });
    });
  }

  pipeline(): Pipeline {
    return new Pipeline(this);
  }

  multi(): Pipeline {
    return new Pipeline(this);
  }
}

/** Commands that are run together. */
class Pipeline {
  readonly #redis: Redis;
  readonly #work: Work[] = [];

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  exec(): Promise<[null, unknown][]> {
    return this.#redis.run((model) =>
      this.#work.map((work): [null, unknown] => [null, work(model)]),
    );
  }

  #add(work: Work): this {
    this.#work.push(work);
    return this;
  }

  info(): this {
    return this.#add(info);
  }

  get(key: string): this {
    return this.#add((model) => model.get(key));
  }

  getrange(key: string): this {
    return this.#add((model) => model.get(key) ?? '');
  }

  /** SET key value PX ms. */
  set(key: string, value: string, _px: 'PX', lastsMs: number): this {
    return this.#add((model) => model.set(key, value, lastsMs));
  }

  del(key: string): this {
    return this.#add((model) => model.delete(key));
  }

  sadd(key: string, member: string): this {
    return this.#add((model) => model.setOf(key).add(member));
  }

  srem(key: string, member: string): this {
    return this.#add((model) => model.setOf(key).delete(member));
  }

  time(): this {
    return this.#add((model) => {
      const now = model.now();
      return [String(Math.floor(now / 1_000)), String(Math.floor((now % 1_000) * 1_000))];
    });
  }
}

function info({ runId }: RedisModel): string {
  return [
    `run_id:${runId}`,
    'redis_version:7.4.0',
    'maxmemory_policy:noeviction',
    'role:master',
    '',
  ].join('\r\n');
}
