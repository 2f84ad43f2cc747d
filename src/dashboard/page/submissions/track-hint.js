import { html } from '../parts/html.js';
import { Command } from '../parts/parts.js';

/** Commands that track a submission. @param {{ id?: string }} props */
export function TrackHint({ id = '<submission id>' }) {
  return html`<p>Track a submission from a terminal:</p>
    <${Command}>npx dawatch track ${id}<//>
    <p>or over HTTP:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d '{"submission_id": "${id}"}'<//
    >`;
}
