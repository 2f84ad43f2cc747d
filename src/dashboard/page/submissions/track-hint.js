import { html } from '../html.js';
import { Command } from '../parts.js';

/** How a submission gets here. @param {{ id?: string }} props */
export function TrackHint({ id = '<submission id>' }) {
  return html`<p>Track one from a terminal:</p>
    <${Command}>npx dawatch track ${id}<//>
    <p>or from any program:</p>
    <${Command}
      >curl ${new URL('v1/submissions', document.baseURI).href} -H "x-api-key: $DAWATCH_API_KEY" \\
  -H 'content-type: application/json' -d '{"submission_id": "${id}"}'<//
    >`;
}
