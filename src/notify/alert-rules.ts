import { type AlertFacts, AlertRule, type Condition } from '../monitor/alert.ts';
import { BreakerState } from '../monitor/breaker.ts';

export type AlertThresholds = {
  /** So many submissions that failed at one upstream within the window. */
  failures: number;
  failuresWindowMs: number;
  /** So many deliveries that wait. */
  backlog: number;
};

/** Which conditions hold now: a pure function of the facts. */
export function conditionsOf(facts: AlertFacts, thresholds: AlertThresholds): Condition[] {
  const found: Condition[] = [];
  for (const { name, state, watched, stuck, failed } of facts.upstreams) {
    const about = (rule: AlertRule, count: number, summary: string) =>
      found.push({ rule, subject: name, summary, count });
    if (state === BreakerState.down)
      about(
        AlertRule.upstreamDown,
        watched,
        `The upstream ${name} does not answer; ${submissions(watched)} wait for it`,
      );
    if (state === BreakerState.unauthorized)
      about(
        AlertRule.credentialsRefused,
        watched,
        `The upstream ${name} refuses our key; ${submissions(watched)} wait for it`,
      );
    if (stuck > 0) about(AlertRule.stuck, stuck, `${submissions(stuck)} of the upstream ${name} are open for too long`);
    const minutes = Math.round(thresholds.failuresWindowMs / 60_000);
    if (failed >= thresholds.failures)
      about(AlertRule.failures, failed, `${submissions(failed)} of the upstream ${name} failed within ${minutes} min`);
  }
  const { waiting } = facts;
  if (waiting >= thresholds.backlog)
    found.push({ rule: AlertRule.backlog, subject: 'all', summary: `${waiting} deliveries wait`, count: waiting });
  for (const { receiver, count } of facts.dead) {
    const summary = `${count} ${count === 1 ? 'delivery' : 'deliveries'} to ${receiver} could not be made: replay them, or wait until they are no longer kept`;
    found.push({ rule: AlertRule.deadLetters, subject: receiver, summary, count });
  }
  for (const { id, reason } of facts.disabled) {
    const why = reason === 'gone' ? 'its receiver answered 410 Gone' : 'nothing but failures for too long';
    found.push({
      rule: AlertRule.webhookDisabled,
      subject: `webhook:${id}`,
      summary: `The webhook ${id} was disabled: ${why}`,
      count: null,
    });
  }
  return found;
}

function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count} submissions`;
}
