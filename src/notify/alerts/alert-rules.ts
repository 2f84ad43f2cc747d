import { type AlertCondition, type AlertFacts, AlertRule } from '../../domain/notifications/alert.ts';
import { BreakerState } from '../../domain/upstream-health.ts';
import { durationText } from '../messages/duration-text.ts';

export type AlertThresholds = {
  /** So many submissions that got Error at one upstream within the window, and did not recover. */
  failures: number;
  failuresWindowMs: number;
  /** So many deliveries that wait for longer than a minute. */
  backlog: number;
  /** A write-ahead log of so many bytes. */
  walBytes: number;
};

/** Which conditions hold now: a pure function of the facts. What is counted is over at half of where it begins. */
export function conditionsOf(facts: AlertFacts, thresholds: AlertThresholds): AlertCondition[] {
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
  { name, state, outSince, watched, stuck, failing, failed }: AlertFacts['upstreams'][number],
  { failures, failuresWindowMs }: AlertThresholds,
  reached: Reached,
): AlertCondition[] {
  const about = (holds: boolean, condition: Omit<AlertCondition, 'subject'>) =>
    holds ? [{ subject: name, ...condition }] : [];
  return [
    ...about(state === BreakerState.down, {
      rule: AlertRule.upstreamDown,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} does not answer; ${waiting(watched)} for it`,
    }),
    ...about(state === BreakerState.unauthorized, {
      rule: AlertRule.credentialsRefused,
      count: watched,
      since: outSince,
      summary: `The upstream ${name} refuses our key; ${waiting(watched)} for it`,
    }),
    ...about(stuck > 0, {
      rule: AlertRule.stuck,
      count: stuck,
      summary: `${submissions(stuck)} of the upstream ${name} ${stuck === 1 ? 'has' : 'have'} been open for too long`,
    }),
    ...about(reached(failing + failed, failures, AlertRule.failures, name), {
      rule: AlertRule.failures,
      count: failing + failed,
      summary: `${submissions(failing + failed)} of the upstream ${name} got Error within ${durationText(failuresWindowMs)} and did not recover: ${failing} failing, ${failed} failed`,
    }),
  ];
}

function ofBacklog(waiting: number, { backlog }: AlertThresholds, reached: Reached): AlertCondition[] {
  const [rule, subject] = [AlertRule.backlog, 'all'];
  if (!reached(waiting, backlog, rule, subject)) return [];
  return [
    {
      rule,
      subject,
      summary: `${deliveries(waiting)} ${waiting === 1 ? 'has' : 'have'} waited for more than a minute`,
      count: waiting,
    },
  ];
}

function ofWal(bytes: number, { walBytes }: AlertThresholds, reached: Reached): AlertCondition[] {
  const [rule, subject] = [AlertRule.walSize, 'ledger'];
  if (!reached(bytes, walBytes, rule, subject)) return [];
  const mib = Math.round(walBytes / 1_048_576);
  const summary = `The ledger's write-ahead log has grown beyond ${mib} MiB: a reader (an export or a backup, say) holds one snapshot of the ledger for too long`;
  return [{ rule, subject, summary, count: null }];
}

function ofDeadLetters({ receiver, count }: AlertFacts['dead'][number]): AlertCondition {
  const summary = `${deliveries(count)} to ${receiver} could not be made: ${count === 1 ? 'it' : 'they'} can be replayed`;
  return { rule: AlertRule.deadLetters, subject: receiver, summary, count };
}

function ofDisabled({ id, reason, since }: AlertFacts['disabled'][number]): AlertCondition {
  const why = reason === 'gone' ? 'its receiver answered 410 Gone' : 'every delivery failed for too long';
  const summary = `The webhook ${id} was disabled: ${why}`;
  return { rule: AlertRule.webhookDisabled, subject: `webhook:${id}`, summary, count: null, since };
}

function deliveries(count: number): string {
  return count === 1 ? '1 delivery' : `${count} deliveries`;
}

function waiting(count: number): string {
  if (count === 0) return 'no submission waits';
  return `${submissions(count)} ${count === 1 ? 'waits' : 'wait'}`;
}

function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count} submissions`;
}
