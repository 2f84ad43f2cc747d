import { useState } from 'preact/hooks';
import { useFeed } from '../data/context.js';
import { html } from '../parts/html.js';
import { Time } from '../parts/parts.js';
import { submissionLink } from '../submissions/submission-table.js';

const SHOWN = 10;

/** Events since the page was opened. */
export function LatestEvents() {
  const [events, setEvents] = useState(/** @type {readonly import('../data/feed.js').FeedEvent[]} */ ([]));
  useFeed((batch) => {
    if (batch.events.length > 0) setEvents((before) => [...batch.events.toReversed(), ...before].slice(0, SHOWN));
  });
  return html`<section aria-labelledby="events">
    <h2 id="events">Latest events</h2>
    ${
      events.length === 0
        ? html`<p class="muted">None since you came. They appear here as they happen.</p>`
        : html`<ol class="events">
            ${events.map(
              (event) => html`<li key=${event.id}>
                <span class="muted"><${Time} at=${event.timestamp} /></span> ${event.type} <${About} event=${event} />
              </li>`,
            )}
          </ol>`
    }
  </section>`;
}

/** @param {{ event: import('../data/feed.js').FeedEvent }} props */
function About({ event: { data } }) {
  if (data.submission) return submissionLink(data.submission);
  return html`<span>${data.alert?.summary ?? data.upstream ?? data.webhook_id}</span>`;
}
