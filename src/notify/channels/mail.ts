import { createHash } from 'node:crypto';
import type { EventRecord } from '../../domain/notifications/event-body.ts';
import type { Line } from '../messages/line.ts';
import type { Message, Severity } from '../messages/message.ts';
import { escapeWith } from '../messages/truncate.ts';

const COLOURS: Record<Severity, string> = { good: '#2e9d5b', info: '#3b82c4', warning: '#b87d00', critical: '#d0342c' };

const escaped = escapeWith({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' });
const html = (text: string) => Array.from(text, escaped).join('');

/** Formats a message as text and HTML. The title contains no line break, so the subject cannot inject a header. */
export function toMail({ title, severity, lines, text }: Message) {
  return {
    subject: `[dawatch] ${title}`,
    text: `${text}\n`,
    html: [
      '<!doctype html><html><body style="font-family:sans-serif">',
      `<h2 style="color:${COLOURS[severity]};font-size:18px">${html(title)}</h2>`,
      `<table cellpadding="4" style="border-collapse:collapse;font-size:14px">${lines.map(row).join('')}</table>`,
      '</body></html>',
    ].join('\n'),
    // Prevents automatic replies.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  };
}

function row({ label, value }: Line): string {
  const cell = `<td style="font-family:monospace;word-break:break-all">${html(value)}</td>`;
  return `<tr><td style="color:#666;vertical-align:top">${html(label ?? '')}</td>${cell}</tr>\n`;
}

/** The same events always produce the same Message-ID, so that a repeated mail can be recognized. */
export function messageIdOf(batch: readonly [EventRecord, ...EventRecord[]], from: string): string {
  const [first] = batch;
  const ids = createHash('sha256').update(batch.map(({ id }) => id).join('\n'));
  const local = batch.length === 1 ? first.id : `${first.id}.${ids.digest('hex').slice(0, 16)}`;
  const domain = /@([a-z0-9.-]+)>?\s*$/i.exec(from)?.[1] ?? 'dawatch.invalid';
  return `<${local.replace(/[^\w.-]/g, '_')}@${domain}>`;
}
