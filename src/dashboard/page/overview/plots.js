import { count, duration } from '../parts/format.js';
import { html } from '../parts/html.js';
import { Plot } from '../parts/plot.js';
import { endedBetween } from '../submissions/submission-table.js';

const MINUTE_MS = 60_000;

/** The last hour, minute by minute. @param {{ minutes: readonly any[], lastHour: any }} props */
export function Plots({ minutes, lastHour }) {
  const at = minutes.map((minute) => Date.parse(minute.at) / 1_000);
  const valuesOf = (/** @type {string} */ name) => minutes.map((minute) => minute[name]);
  const perMinute = valuesOf('finalized');
  const hrefOf = (/** @type {number} */ index) => {
    const { finalized, at } = minutes[index] ?? { finalized: 0 };
    const start = Date.parse(at);
    return finalized === 0
      ? undefined
      : endedBetween(start, start + MINUTE_MS, { status: 'finalized' });
  };
  return html`<section aria-labelledby="plots">
    <h2 id="plots">The last hour</h2>
    <div class="plots">
      <${Plot}
        title="Finalizations per minute"
        summary=${`${count(lastHour.finalized)} became final; at most ${count(Math.max(0, ...perMinute))} in one minute.`}
        at=${at}
        series=${[{ label: 'finalized', values: perMinute, color: '--plot-1', isBars: true }]}
        format=${count}
        unit=""
        hrefOf=${hrefOf}
      />
      <${Plot}
        title="Time to finality"
        summary=${summaryOf(lastHour.time_to_finality_s)}
        at=${at}
        series=${quantiles(valuesOf, 'time_to_finality')}
        format=${duration}
        unit=" s"
        hrefOf=${hrefOf}
      />
      <${Plot}
        title="Detection lag"
        summary=${summaryOf(lastHour.detection_lag_s)}
        at=${at}
        series=${quantiles(valuesOf, 'detection_lag')}
        format=${duration}
        unit=" s"
        hrefOf=${hrefOf}
      />
    </div>
  </section>`;
}

/** @param {(name: string) => readonly (number | null)[]} valuesOf @param {string} name */
function quantiles(valuesOf, name) {
  return [
    { label: 'p50', values: valuesOf(`${name}_p50_s`), color: '--plot-1' },
    { label: 'p99', values: valuesOf(`${name}_p99_s`), color: '--plot-2' },
  ];
}

/** @param {{ mean: number, p50: number, p90: number, p99: number } | null} spread */
function summaryOf(spread) {
  if (spread === null) return 'No data yet.';
  return `Mean ${duration(spread.mean)}, p50 ${duration(spread.p50)}, p90 ${duration(spread.p90)}, p99 ${duration(spread.p99)}.`;
}
