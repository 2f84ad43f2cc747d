import { type AlertCondition, AlertRule } from './alert.ts';

/**
 * Returns the path of the dashboard page about an alert, relative to the base address of the
 * server.
 */
export function alertPath({ rule, subject }: Pick<AlertCondition, 'rule' | 'subject'>): string {
  if (rule === AlertRule.failures) return '#/submissions?status=failing';
  if (rule === AlertRule.backlog) return '#/deliveries?state=waiting';
  if (rule === AlertRule.deadLetters) return '#/deliveries?state=dead';
  if (rule === AlertRule.webhookDisabled)
    return `#/webhooks/${encoded(subject.replace(/^webhook:/, ''))}`;
  if (rule === AlertRule.errorBudget) return '#/reports';
  return OVERVIEW_PATH;
}

export function submissionPath(submissionId: string): string {
  return `#/submissions/${encoded(submissionId)}`;
}

export const OVERVIEW_PATH = '#/';

/**
 * Joins a path of the dashboard to `server.public_url`. The result contains no character that ends
 * a link in a message.
 */
export function linkTo(publicUrl: string, path: string): string {
  return `${publicUrl.replace(/\/+$/, '').replace(UNSAFE, percentEncoded)}/${path}`;
}

/**
 * Characters that end a link in the markup of a chat service, although encodeURIComponent or the
 * URL parser keeps them.
 */
const UNSAFE = /[!'()*|<>"[\]\s]/g;

function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(UNSAFE, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}
