import { isAdmin, useDashboard, useLoad, useWhileVisible } from '../data/context.js';
import { count, text } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Action, Badge, Command, Empty, Loadable, PageHeader, Time } from '../parts/parts.js';
import { Table } from '../parts/table.js';
import { hrefTo } from '../router.js';

/** @import { Channel, ChannelList } from '../../../client/api.ts' */

const REFRESH_MS = 10_000;

export function ChannelsPage() {
  const { api, session } = useDashboard();
  const loaded = useLoad((signal) => api.get('v1/channels', { signal }), 'channels');
  useWhileVisible(loaded.reload, REFRESH_MS);
  const mayTest = isAdmin(session);
  return html`<${PageHeader}
      title="Channels"
      about=${`Defined in the settings of the server.${mayTest ? '' : ' This session cannot test them.'}`}
    />
    <${Loadable} loaded=${loaded}>
      ${(/** @type {ChannelList} */ { channels }) =>
        channels.length === 0
          ? html`<${Empty} title="No channels.">
              <p>Add one to the settings, such as Slack, then restart dawatch:</p>
              <${Command}>${EXAMPLE}<//>
            <//>`
          : html`<${Table}
              caption="Channels, in the order of the settings"
              hidesCaption
              columns=${mayTest ? [...COLUMNS, testColumn(loaded.reload)] : COLUMNS}
              rows=${channels.map((channel) => ({ ...channel, id: channel.name }))}
            />`}
    <//>`;
}

/** Run in the folder of the server. */
const EXAMPLE = `mkdir -p config && cat >>config/dawatch.yaml <<'END'
channels:
  ops: { type: slack, url: https://hooks.slack.com/services/T0/B0/secret }
routes:
  - { types: [alert.*], channels: [ops] }
END`;

/** @type {readonly import('../parts/table.js').Column<Channel>[]} */
const COLUMNS = [
  { title: 'Channel', cell: ({ name, type }) => html`${name} <span class="muted">${type}</span>` },
  {
    title: 'Address',
    class: 'from-l',
    cell: ({ address }) => html`<span class="id">${address}</span>`,
  },
  {
    title: 'Events',
    class: 'from-l',
    cell: ({ routes }) =>
      routes.length === 0
        ? html`<span class="muted">none: no route selects it</span>`
        : routes.map(
            ({ types, metadata }, index) =>
              html`<span key=${index}>${index > 0 && '; '}${types.join(', ')}${metadata && ` with ${text(metadata)}`}</span>`,
          ),
  },
  {
    title: 'State',
    width: 15,
    cell: (channel) => {
      const { at, ...state } = stateOf(channel);
      return html`<${Badge} ...${state} />${at && html` <span class="muted"><${Time} at=${at} /></span>`}`;
    },
  },
  {
    title: 'Waiting',
    class: 'number from-m',
    width: 6,
    cell: (channel) => deliveriesLink(channel, 'waiting'),
  },
  {
    title: 'Dead letters',
    class: 'number from-m',
    width: 7,
    cell: (channel) => deliveriesLink(channel, 'dead'),
  },
];

/** By the newest attempt, with its time. @param {Channel} channel */
function stateOf({ last_success_at: success, last_failure_at: failure }) {
  if (failure !== null && (success === null || failure > success))
    return { state: 'failing', at: failure };
  if (failure !== null && failure === success)
    return { state: 'failing', label: 'some refused', at: failure };
  return success === null
    ? { state: 'unused', label: 'not used yet', at: null }
    : { state: 'enabled', label: 'working', at: success };
}

/** @param {Channel} channel @param {'waiting' | 'dead'} state */
function deliveriesLink({ name, deliveries }, state) {
  const number = deliveries[state];
  if (number === 0) return html`<span class="muted">0</span>`;
  return html`<a href=${hrefTo('deliveries', undefined, { destination: `channel:${name}`, state })}>${count(number)}</a>`;
}

/** @param {() => void} reload @returns {import('../parts/table.js').Column<Channel>} */
function testColumn(reload) {
  return {
    title: 'Action',
    class: 'end',
    width: 11,
    cell: ({ name }) => html`<${ChannelTest} name=${name} reload=${reload} />`,
  };
}

function ChannelTest({ name, reload }) {
  const { api } = useDashboard();
  const test = async () => {
    const delivery = await api.post(`v1/channels/${encodeURIComponent(name)}/test`);
    return await resultOf(api, delivery).finally(reload);
  };
  return html`<${Action} label="Send test event" name=${`Send test event: ${name}`} act=${test} />`;
}

/** The server aborts an attempt after 15 s. */
const TIMEOUT_MS = 20_000;
const PAUSE_MS = 200;

/** Returns the result of the first attempt as a text. Rejects if it failed. */
export async function resultOf(api, { id }) {
  const endsAt = performance.now() + TIMEOUT_MS;
  for (;;) {
    const { state, attempts } = await api.get(`v1/deliveries/${id}`);
    const last = attempts.at(-1);
    if (last && state === 'delivered')
      return `Delivered in ${last.duration_ms} ms${last.http_status ? `: HTTP ${last.http_status}` : ''}${last.error ? `: ${last.error}` : ''}.`;
    if (last) throw new Error(`Not delivered: ${last.error}. Delivery ${id} has the details.`);
    if (state !== 'waiting') throw new Error(`Not delivered. Delivery ${id} has the details.`);
    if (performance.now() > endsAt) return `Delivery ${id} waits behind others.`;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
