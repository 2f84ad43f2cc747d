import { between, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Badge, Time } from '../parts/parts.js';

/** Every change, oldest first. @param {{ entries: readonly any[] }} props */
export function Timeline({ entries }) {
  const begin = entries[0]?.at ?? '';
  return html`<ol class="timeline">
    ${entries.map((entry, index) => html`<${Entry} key=${entry.seq} entry=${entry} before=${entries[index - 1]} begin=${begin} />`)}
  </ol>`;
}

/** @param {{ entry: any, before: any, begin: string }} props */
function Entry({ entry, before, begin }) {
  const changes = changedIn(before?.data ?? {}, entry.data ?? {});
  return html`<li class=${entry.status}>
    <p>
      <${Badge} state=${entry.status} />
      ${entry.previous_status === entry.status && html` <span class="muted">${entry.changes ? 'options changed' : 'data changed'}</span>`}
    </p>
    <p class="muted"><${Time} at=${entry.at} />${before && ` · ${between(begin, entry.at)} after it was tracked`}</p>
    ${entry.upstream_state && entry.upstream_state !== before?.upstream_state && html`<p>The upstream reports ${entry.upstream_state}</p>`}
    ${entry.error && html`<p class="wrong">${entry.error}</p>`}
    ${entry.changes && html`<${OptionChanges} changes=${entry.changes} />`}
    ${
      changes.length > 0 &&
      html`<details>
        <summary>${changes.length === 1 ? '1 field of its data' : `${changes.length} fields of its data`}</summary>
        <dl class="changes">
          ${changes.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd class="value">${text(value)}</dd></div>`)}
        </dl>
      </details>`
    }
  </li>`;
}

/**
 * The options that a client changed, with their previous values. @param {{ changes: Record<string,
 * { from: unknown, to: unknown }> }} props
 */
function OptionChanges({ changes }) {
  return html`<dl class="changes">
    ${Object.entries(changes).map(
      ([name, { from, to }]) => html`<div key=${name}>
        <dt>${name}</dt>
        <dd class="value">${name.endsWith('_at') ? html`<${Time} at=${from} /> → <${Time} at=${to} />` : `${text(from)} → ${text(to)}`}</dd>
      </div>`,
    )}
  </dl>`;
}

/**
 * Returns the fields that were added or changed. @param {Record<string, unknown>} before @param
 * {Record<string, unknown>} now
 */
function changedIn(before, now) {
  return Object.entries(now).filter(
    ([name, value]) => value !== null && text(before[name]) !== text(value),
  );
}
