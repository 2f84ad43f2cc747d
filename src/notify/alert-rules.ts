import { type AlertFacts, AlertRule, type Condition } from '../monitor/alert.ts';
import { BreakerState } from '../monitor/breaker.ts';
import { durationText } from './duration-text.ts';

export type AlertThresholds = {
  /** So many submissions that failed at one upstream within the window. */
  failures: number;
  failuresWindowMs: number;
  /** So many deliveries that wait for longer than a minute. */
  backlog: number;
  /** A write-ahead log of so many bytes. */
  walBytes: number;
};

/** Which conditions hold now: a pure function of the facts. What is counted is over at half of where it begins. */
export function conditionsOf(facts: AlertFacts, thresholds: AlertThresholds): Condition[] {
  const reached = (count: number, threshold: number, rule: AlertRule, subject: string) => {
    const isOpen = facts.open.some((alert) => alert.rule === rule && alert.subject === subject);
    return count >= (isOpen ? threshold / 2 : threshold);
  };
  return [
    ...facts.upstreams.flatMap((upstream) => ofUpstream(upstream, thresholds, reached)),
    ...ofBacklog(facts.waiting, thresholds, reached),
    ...facts.dead.map(ofDeadLetters),
    ...facts.disabled.map(ofDisabled),
    ...ofWal(facts.walBytes, thresholds, reached),
  ];
}

type Reached = (count: number, threshold: number, rule: AlertRule, subject: string) => boolean;

function ofUpstream(
  { name, state, outSince, watched, stuck, failed }: AlertFacts['upstreams'][number],
  { failures, failuresWindowMs }: AlertThresholds,
  reached: Reached,
): Condition[] {
  const about = (holds: boolean, condition: Omit<Condition, 'subject'>) =>
    holds ? [{ subject: name, ...condition }] : [];
  return [
    ...about(state === BreakerState.down, {
      rule: AlertRule.upstreamDown,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} does not answer; ${submissions(watched)} wait for it`,
    }),
    ...about(state === BreakerState.unauthorized, {
      rule: AlertRule.credentialsRefused,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} refuses our key; ${submissions(watched)} wait for it`,
    }),
    ...about(stuck > 0, {
      rule: AlertRule.stuck,
      count: stuck,
      summary: `${submissions(stuck)} of the upstream ${name} are open for too long`,
    }),
    ...about(reached(failed, failures, AlertRule.failures, name), {
      rule: AlertRule.failures,
      count: failed,
      summary: `${submissions(failed)} of the upstream ${name} failed within ${durationText(failuresWindowMs)}`,
    }),
  ];
}

function ofBacklog(waiting: number, { backlog }: AlertThresholds, reached: Reached): Condition[] {
  const [rule, subject] = [AlertRule.backlog, 'all'];
  if (!reached(waiting, backlog, rule, subject)) return [];
  return [{ rule, subject, summary: `${waiting} deliveries wait for longer than a minute`, count: waiting }];
}

function ofWal(bytes: number, { walBytes }: AlertThresholds, reached: Reached): Condition[] {
  const [rule, subject] = [AlertRule.walSize, 'ledger'];
  if (!reached(bytes, walBytes, rule, subject)) return [];
  const mib = Math.round(walBytes / 1_048_576);
  const summary = `The ledger's write-ahead log has grown beyond ${mib} MiB: something reads one moment of the ledger for long`;
  return [{ rule, subject, summary, count: null }];
}

function ofDeadLetters({ receiver, count }: AlertFacts['dead'][number]): Condition {
  const deliveries = count === 1 ? '1 delivery' : `${count} deliveries`;
  const summary = `${deliveries} to ${receiver} could not be made: they can be replayed`;
  return { rule: AlertRule.deadLetters, subject: receiver, summary, count };
}

function ofDisabled({ id, reason, since }: AlertFacts['disabled'][number]): Condition {
  const why = reason === 'gone' ? 'its receiver answered 410 Gone' : 'nothing but failures for too long';
  const summary = `The webhook ${id} was disabled: ${why}`;
  return { rule: AlertRule.webhookDisabled, subject: `webhook:${id}`, summary, count: null, since };
}

function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count} submissions`;
}
